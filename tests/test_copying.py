"""Copies of rows with some fields changed."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from outreach.core.copying import copy_with, maker_of
from outreach.models import Counters
from outreach.models.states import DispatchState
from outreach.testing.builders import make_campaign, make_dispatch, make_recipient


@attrs.frozen
class Single:
    """A class of one field."""

    count: int


@attrs.frozen
class Checked:
    """A class whose fields are checked when it is made."""

    count: int = attrs.field(validator=attrs.validators.ge(0))
    name: str = ""


@attrs.frozen
class Converted:
    """A class whose fields are converted when it is made."""

    count: int = attrs.field(converter=int)
    name: str = ""


@attrs.frozen(slots=False)
class Open:
    """A class without slots."""

    count: int
    name: str = ""


@attrs.frozen
class Finished:
    """A class that does something more when it is made."""

    count: int
    name: str = ""

    def __attrs_post_init__(self) -> None:
        """Refuse some."""
        assert self.count > 0


@pytest.mark.parametrize(
    ("row", "changes"),
    [
        (make_recipient(), {"dispatched": True, "tries": 2}),
        (make_dispatch(), {"state": DispatchState.ACCEPTED, "provider_id": "1"}),
        (make_campaign(), {"counters": Counters(total=3)}),
        (Counters(total=1, open=1), {}),
    ],
)
def test_equals_the_copy_of_attrs(row: Any, changes: dict[str, Any]) -> None:
    """It is what `attrs.evolve` returns, and leaves the row as it was."""
    before = attrs.evolve(row)

    copy = copy_with(row, **changes)

    assert copy == attrs.evolve(row, **changes)
    assert type(copy) is type(row)
    assert copy is not row
    assert row == before


def test_copies_fields_that_are_not_compared() -> None:
    """Every field is copied."""
    row = make_recipient()

    copy = copy_with(row)

    assert all(getattr(copy, field.name) is getattr(row, field.name) for field in attrs.fields(type(row)))


def test_names_an_unknown_field() -> None:
    """A field that the class has not is an error."""
    with pytest.raises(TypeError, match="Counters has no field 'tottal'"):
        copy_with(Counters(), tottal=1)  # type: ignore[call-arg]


@pytest.mark.parametrize("row", [Checked(1), Converted(1), Open(1), Finished(1)])
def test_refuses_a_class_that_has_to_be_called(row: Any) -> None:
    """Nothing that a class does when it is made is left out unnoticed."""
    with pytest.raises(TypeError, match=rf"{type(row).__name__} cannot be copied field by field: use attrs\.evolve"):
        copy_with(row, count=2)
    assert maker_of(type(row), ("count", "name")) is None


@pytest.mark.parametrize("row", [make_recipient(), make_dispatch(), Counters(total=3)])
def test_makes_a_row_from_its_values(row: Any) -> None:
    """It is what the class returns, whatever the order of the fields, and as frozen."""
    names = tuple(field.name for field in attrs.fields(type(row)))[::-1]
    make = maker_of(type(row), names)
    assert make is not None

    made = make([getattr(row, name) for name in names])

    assert made == row
    assert type(made) is type(row)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        setattr(made, names[0], None)
    with pytest.raises(ValueError, match="values to unpack"):
        make([None])


def test_makes_a_row_of_one_field() -> None:
    """Its value is taken out of the sequence."""
    make = maker_of(Single, ("count",))
    assert make is not None
    assert make([3]) == Single(3)


def test_makes_no_row_of_which_fields_are_missing() -> None:
    """The class has to be called, which knows the others' defaults."""
    assert maker_of(Counters, ("total",)) is None
    assert copy_with(Single(1), count=2) == Single(2)
