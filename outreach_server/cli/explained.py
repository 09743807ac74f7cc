"""What providers said of what went wrong, for documents and for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from rich.table import Table

from outreach.models import Channel, ProviderFailure
from outreach.reasons import PAUSE_REASONS, describe_reason
from outreach_server.cli.base import state
from outreach_server.cli.documents import Document
from outreach_server.cli.output import listing, show

FIELDS: Final = ("error_code", "error_message", "meaning", "advice", "source")
_COUNTED: Final = ("count", "provider", "reason", *FIELDS[:-1])
_TOLD_ONCE: Final = FIELDS[:-1]
_MAX_TOLD: Final = 20
_OF_STEP: Final = ("at", "reason", *FIELDS[:-1])
_TOLD_BY: Final = frozenset({"outcome", "reported", "call_ended"})


def failure(item: ProviderFailure | None) -> Document:
    """Return what a provider said, what that means and what to do; every field is null where nothing went wrong."""
    if item is None:
        return dict.fromkeys(FIELDS)
    explanation = item.explanation
    return {
        "error_code": item.error_code,
        "error_message": item.error_message,
        "meaning": explanation.meaning if explanation else None,
        "advice": explanation.advice if explanation else None,
        "source": explanation.source if explanation else None,
    }


def show_with(document: Document, item: ProviderFailure | None) -> None:
    """Print a document with what a provider said; people are not told that it said nothing."""
    told = failure(item)
    show({**document, **(told if state().as_json else {name: value for name, value in told.items() if value})})


def counted(items: Sequence[tuple[ProviderFailure, int]]) -> list[Document]:
    """Return what went wrong in a campaign, the most frequent first, with how many requests each."""
    documents = []
    for item, count in items:
        documents.append({"count": count, "provider": item.provider, "reason": item.reason, **failure(item)})
    return documents


def counted_table(documents: Sequence[Document]) -> Table:
    """Return `counted` as a table for people."""
    return listing(documents, _COUNTED)


class Legend:
    """What providers said of many contacts, each kind of it once, to be told below them: at most so many kinds."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[object, object], Document] = {}

    def add(self, document: Document) -> None:
        """Take what is said of one contact; nothing where nothing went wrong."""
        kind = (document["error_code"], document["meaning"])
        if any(kind) and len(self._kinds) < _MAX_TOLD:
            self._kinds.setdefault(kind, document)

    def table(self) -> Table | None:
        """Return it as a table for people; None where nothing was said."""
        return listing(self._kinds.values(), _TOLD_ONCE) if self._kinds else None


def steps(history: Document, failures: Mapping[str, ProviderFailure], channel: Channel) -> Document:
    """Return a contact's history whose steps say why in words, and what the provider said.

    What it said stands at the last step that tells of the request.
    """
    told: set[str] = set()
    found = []
    for step in reversed(history["steps"]):
        item = failures.get(step["dispatch_id"]) if step["what"] in _TOLD_BY else None
        if item is not None and step["dispatch_id"] not in told:
            told.add(step["dispatch_id"])
        else:
            item = None
        found.append({**step, "why": _why(step, channel), **failure(item)})
    return {**history, "steps": found[::-1]}


def _why(step: Document, channel: Channel) -> str | None:
    if step["what"] == "campaign":
        return PAUSE_REASONS.get(step["reason"] or "")
    return describe_reason(step["state"] or "", step["reason"], channel) if step["reason"] else None


def steps_table(history: Document) -> Table | None:
    """Return a table of what providers said of a contact's requests; None where they said nothing."""
    wrong = [step for step in history["steps"] if step["error_code"] or step["meaning"]]
    return listing(wrong, _OF_STEP) if wrong else None
