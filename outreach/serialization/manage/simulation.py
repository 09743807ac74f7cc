"""The body of an event to simulate."""

from __future__ import annotations

from typing import Any, Final

from outreach.models.simulation import NewSimulation
from outreach.serialization.field_rules import make_request_converter, read_object

_read_simulation: Final = make_request_converter(NewSimulation, closed="a simulated event")


def read_new_simulation(data: Any) -> NewSimulation:
    """Return the event of a body of POST /manage/simulate.

    Raises:
        InvalidRequest: A field is unknown or out of its bounds; the details name each place.
    """
    return read_object(_read_simulation, data)
