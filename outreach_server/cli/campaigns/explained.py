"""Provider failures, as documents and for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from rich.console import RenderableType

from outreach.models import Channel, ProviderFailure
from outreach.reasons import PAUSE_REASONS, describe_reason
from outreach_server.cli.base import state
from outreach_server.cli.documents import Document
from outreach_server.cli.output import listing, show

FIELDS: Final = ("error_code", "error_message", "meaning", "advice", "source")
_COUNTED: Final = ("count", "provider", "reason", *FIELDS[:-1])
_SHOWN_ONCE: Final = FIELDS[:-1]
_MAX_SHOWN: Final = 20
_OF_STEP: Final = ("at", "reason", *FIELDS[:-1])
_WITH_FAILURE: Final = frozenset({"outcome", "reported", "call_ended"})


def failure(item: ProviderFailure | None) -> Document:
    """Return a failure with its meaning and advice; every field is null without one."""
    return {name: getattr(item, name, None) for name in FIELDS}


def show_with(document: Document, item: ProviderFailure | None) -> None:
    """Print a document with a failure, if any."""
    shown = failure(item)
    show({**document, **(shown if state().as_json else {name: value for name, value in shown.items() if value})})


def counted(items: Sequence[tuple[ProviderFailure, int]]) -> list[Document]:
    """Return a campaign's failures with the number of requests, most frequent first."""
    return [
        {"count": count, "provider": item.provider, "reason": item.reason, **failure(item)} for item, count in items
    ]


def counted_table(documents: Sequence[Document]) -> RenderableType:
    """Return `counted` as a table for people."""
    return listing(documents, _COUNTED)


class Legend:
    """Collects the different failures of many contacts, up to a limit, to be printed below them."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[object, object], Document] = {}

    def add(self, document: Document) -> None:
        """Add one contact's failure, if any."""
        kind = (document["error_code"], document["meaning"])
        if any(kind) and len(self._kinds) < _MAX_SHOWN:
            self._kinds.setdefault(kind, document)

    def table(self) -> RenderableType | None:
        """Return the failures as a table; None if there are none."""
        return listing(self._kinds.values(), _SHOWN_ONCE) if self._kinds else None


def steps(history: Document, failures: Mapping[str, ProviderFailure], channel: Channel) -> Document:
    """Return a contact's history with reasons in words, and each failure at the last step of its request."""
    shown: set[str] = set()
    found = []
    for step in reversed(history["steps"]):
        item = failures.get(step["dispatch_id"]) if step["what"] in _WITH_FAILURE else None
        if item is not None and step["dispatch_id"] not in shown:
            shown.add(step["dispatch_id"])
        else:
            item = None
        found.append({**step, "why": _why(step, channel), **failure(item)})
    return {**history, "steps": found[::-1]}


def _why(step: Document, channel: Channel) -> str | None:
    if step["what"] == "campaign":
        return PAUSE_REASONS.get(step["reason"] or "")
    return describe_reason(step["state"] or "", step["reason"], channel) if step["reason"] else None


def steps_table(history: Document, zone: str) -> RenderableType | None:
    """Return a table of the failures in a history, with times of a zone; None if there are none."""
    wrong = [step for step in history["steps"] if step["error_code"] or step["meaning"]]
    return listing(wrong, _OF_STEP, zone) if wrong else None
