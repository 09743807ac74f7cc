"""The description of a page of the set-up: its list, its forms, and the service that each form calls."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias

import attrs
from markupsafe import Markup

from outreach import Outreach
from outreach_server.console.access import Right
from outreach_server.console.context import Visit
from outreach_server.console.pages.campaign_views import MomentView, moment_of
from outreach_server.console.pages.set_up.inputs import Input

PAGE_SIZE: Final = 100

_CHANGED: Final = (
    "It has changed since this form was made; below is what you entered, and above it how it is now. Save again to "
    "change it all the same."
)


@attrs.frozen(kw_only=True)
class LinkView:
    """A text that leads to another page."""

    text: str
    url: str


Cell: TypeAlias = str | MomentView | LinkView | Sequence[str]
"""The content of a table's cell: a text, a moment, a link, or lines."""


@attrs.frozen(kw_only=True)
class Listed:
    """A page of a list.

    Attributes:
        items: The things that are listed.
        next: The cursor of the next page; None at the end.
    """

    items: Sequence[Any]
    next: str | None = None


@attrs.frozen(kw_only=True)
class Result:
    """The result of an action.

    Attributes:
        goes_to: Where the page of the action leads: the identifier of one; `list`, or `same` for the page itself.
        text: The message that the page shows at once, instead of leading on; empty to lead on.
        good: Whether that is good news.
        secret: A secret that is shown with it, this once: a key, or a link.
    """

    goes_to: str = "same"
    text: str = ""
    good: bool = True
    secret: str = attrs.field(default="", repr=False)


@attrs.frozen(kw_only=True)
class TableRow:
    """A row of a table.

    Attributes:
        sends: The values that its button alone sends; empty where it has none.
    """

    cells: Sequence[Cell]
    sends: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class Table:
    """A table of the items of one thing, in its page.

    Attributes:
        note: A note about it.
        next: The cursor of the next page; None at the end.
        nothing: The text without rows.
        sends: The values that the buttons of all rows send, the action among them; empty where rows have none.
        label: The words of these.
    """

    title: str
    note: str
    columns: Sequence[str]
    rows: Sequence[TableRow]
    next: str | None = None
    nothing: str
    sends: Mapping[str, str] = attrs.field(factory=dict)
    label: str = ""


@attrs.frozen(kw_only=True)
class On:
    """The object of an action.

    Attributes:
        one: The thing; None on a list.
    """

    visit: Visit
    one: Any = None

    @property
    def engine(self) -> Outreach:
        """The engine."""
        return self.visit.engine

    @property
    def place(self) -> str:
        """The identifier of the workspace of the page."""
        return self.visit.place.id

    @property
    def actor(self) -> str:
        """The person, as the audit trail names it."""
        return self.visit.actor


@attrs.frozen(kw_only=True)
class Sent(On):
    """A form that was sent.

    Attributes:
        values: The values of its fields, by name.
        key: Its key: sent twice, it does nothing the second time, where the service knows keys.
    """

    values: Mapping[str, Any]
    key: str


Fields: TypeAlias = Callable[[On], Awaitable[Sequence[Input]]]


async def no_fields(_: On) -> Sequence[Input]:
    """Return no fields: of a button."""
    return ()


async def _changed(_: On) -> str:
    """Return what is said of a form of another state."""
    return _CHANGED


@attrs.frozen(kw_only=True)
class SetUpAction:
    """An action of a person on a page of the set-up.

    Attributes:
        name: Its name in forms.
        label: The words of its button.
        title: The head of its form; empty for the same words.
        right: The right that it takes beside that of the page; None if it takes no other.
        command: Its command, without the program's name.
        operation: The `operationId` of its operation in `openapi.yaml`; empty where the HTTP API has none on purpose.
        do: Does it.
        fields: The fields of its form, for what it is done to.
        done: The message after it; empty for `Saved.`
        proof: Whether the password is asked again, because it is dangerous.
        typed: Whether the name is typed, because it cannot be undone.
        effect: Its effect, for those who are to type the name, or a hint before it.
        changes: Whether it changes what the form showed: a form of another state is refused.
        changed: What is said then.
        primary: Whether it is the action that a person most likely wants.
        possible: Whether it can be done to something in its present state.
        preview: The lines that are shown before it is done; the form is sent again to do it.
    """

    name: str
    label: str
    title: str = ""
    right: Right | None = None
    command: str
    operation: str = ""
    do: Callable[[Sent], Awaitable[Result]]
    fields: Fields = no_fields
    done: str = "Saved."
    proof: bool = False
    typed: bool = False
    effect: str = ""
    changes: bool = False
    changed: Callable[[On], Awaitable[str]] = _changed
    primary: bool = False
    possible: Callable[[On], bool] = lambda _: True
    preview: Callable[[Sent], Awaitable[Sequence[str]]] | None = None

    def is_open_to(self, visit: Visit) -> bool:
        """Return whether a person who sees the page may do it."""
        return self.right is None or visit.may(self.right)


class Noun:
    """A kind of thing that is set up.

    Attributes:
        name: The name of its page, and the last part of the page's path.
        title: Its name on pages, in the plural.
        one: The same in the singular.
        right: The right to see it.
        columns: The heads of its table, the name first.
        empty: The text of an empty list.
        place: `workspace`, or `system` for the pages of operators.
        own_login: Whether it is there only where the console has its own logins.
        file: The name of the page that sends the list as a file; empty without one.
        shape: `many` with a page for each, `single` without a list, or `rows` without pages for each.
        live: The name of the stream of the page of one; empty where that does not change by itself.
        on_list: The actions on the list.
        on_one: The actions on one.
    """

    name: str
    title: str
    one: str
    right: Right
    columns: Sequence[str] = ()
    empty: str = ""
    place: Literal["workspace", "system"] = "workspace"
    own_login: bool = False
    file: str = ""
    shape: Literal["many", "single", "rows"] = "many"
    live: str = ""
    on_list: Sequence[SetUpAction] = ()
    on_one: Sequence[SetUpAction] = ()

    async def list(self, visit: Visit, after: str | None) -> Listed:
        """Return a page of the list."""
        raise NotImplementedError

    async def get(self, visit: Visit, identifier: str) -> Any:
        """Return one, or raise `NotFound`; the thing of a single page takes no identifier."""
        raise NotImplementedError

    def identify(self, one: Any) -> str:
        """Return the identifier of one."""
        return str(one.id)

    def called(self, one: Any) -> str:
        """Return the name of one."""
        return str(one.name)

    async def cells(self, visit: Visit, items: Sequence[Any]) -> Sequence[Sequence[Cell]]:
        """Return the cells of each row, but for the name."""
        return [() for _ in items]

    async def facts(self, visit: Visit, one: Any) -> Sequence[tuple[str, Cell]]:
        """Return what is known of one."""
        return ()

    async def drawing(self, visit: Visit, one: Any) -> Markup:
        """Return what the page of one draws; empty for nothing."""
        return Markup()

    async def table(self, visit: Visit, one: Any, after: str | None) -> Table | None:
        """Return what belongs to one, from a cursor on; None for nothing."""
        return None

    def is_begun(self, visit: Visit) -> bool:
        """Return whether the form of the list is open, because the address chooses something for it."""
        return False

    async def filters(self, visit: Visit) -> Sequence[Input]:
        """Return the fields by which the list is filtered."""
        return ()


def at(visit: Visit, moment: datetime | None) -> Cell:
    """Return a moment, or nothing, for a table."""
    return "" if moment is None else moment_of(moment, visit.now, visit.clocks())


def digest_of(one: Any) -> str:
    """Return a digest of something as it is now, by which a form of an earlier state is known."""
    return hashlib.sha256(repr(one).encode("utf-8", "backslashreplace")).hexdigest()[:32]
