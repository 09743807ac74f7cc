"""The page of the fields of GET /readyz."""

from __future__ import annotations

from typing import get_args

from outreach.models import health, status
from outreach.models.health import DispatcherState
from tests.reference.markdown import meanings, page, table


def readiness_page() -> str:
    """Return the page of what `/readyz` answers, from the models that it shows."""
    readiness, dispatcher = meanings(status, "Readiness"), meanings(health, "DispatcherHealth")
    states = meanings(health, "DispatcherState")
    assert tuple(states) == get_args(DispatcherState)
    rows = [
        ("`status`", "`ready` or `not_ready`."),
        ("`reasons`", readiness["reasons"]),
        ("`storage.write_seconds`", readiness["write_seconds"]),
        ("`storage.write_error`", readiness["write_error"]),
        ("`unusable_adapters`", readiness["adapter_problems"]),
        ("`dispatcher.refused`", "Why dispatch is disabled here, in one word; else None."),
        *((f"`dispatcher.{name}`", text) for name, text in dispatcher.items() if not name.startswith("refused")),
    ]
    return page(
        "Readiness",
        "The fields of `GET /readyz`; null for None. [operations.md](../operations.md#watching-it) says what to do.",
        table(("Field", "Meaning"), rows),
        "## States of the dispatcher",
        table(("`dispatcher.state`", "Meaning"), [(f"`{name}`", text) for name, text in states.items()]),
    )
