"""The ledger, and the calls and single messages that it is about."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from outreach.clock import from_text, to_text
from outreach.convert.rows import to_row
from outreach.models.call import Call
from outreach.models.dispatch import Dispatch, DispatchGroup, Sent
from outreach.models.message import InboundMessage, Keyword, Message, ReplyPurpose
from outreach.storage.sqlite.sql import load
from outreach.storage.sqlite.tables.base import Table


class Dispatches(Table):
    """The ledger."""

    queries = load("dispatches")
    what = "dispatch"

    def insert(self, dispatch: Dispatch) -> None:
        """Write an intent."""
        self._change("insert", to_row(dispatch))

    def get(self, workspace_id: str, dispatch_id: str) -> Dispatch | None:
        """Return a dispatch."""
        return self._one(Dispatch, "get", workspace_id=workspace_id, dispatch_id=dispatch_id)

    def find(self, dispatch_id: str) -> Dispatch | None:
        """Return a dispatch of whatever workspace."""
        return self._one(Dispatch, "find", dispatch_id=dispatch_id)

    def by_provider_id(self, workspace_id: str, provider: str, provider_id: str) -> Dispatch | None:
        """Return the newest dispatch with this identifier of this provider."""
        return self._one(
            Dispatch, "by_provider_id", workspace_id=workspace_id, provider=provider, provider_id=provider_id
        )

    def update(self, dispatch: Dispatch) -> None:
        """Write over a dispatch; what it is for stays as it is."""
        self._change_one("update", to_row(dispatch))

    def of_recipient(self, workspace_id: str, campaign_id: str, position: int) -> Sequence[Dispatch]:
        """Return a recipient's dispatches, oldest first."""
        return self._all(
            Dispatch, "of_recipient", workspace_id=workspace_id, campaign_id=campaign_id, position=position
        )

    def of_call(self, workspace_id: str, call_id: str) -> Sequence[Dispatch]:
        """Return a call's dispatches, oldest first."""
        return self._all(Dispatch, "of_call", workspace_id=workspace_id, call_id=call_id)

    def of_message(self, workspace_id: str, message_id: str) -> Sequence[Dispatch]:
        """Return a message's dispatches, oldest first."""
        return self._all(Dispatch, "of_message", workspace_id=workspace_id, message_id=message_id)

    def sent_to(self, workspace_id: str, phone: str, *, since: datetime) -> Sequence[Sent]:
        """Return dispatches to a number that were created at or after a moment, oldest first."""
        rows = self._rows("sent_to", workspace_id=workspace_id, phone=phone, since=to_text(since))
        return [Sent(from_text(row["created_at"]), bool(row["under_way"])) for row in rows]

    def recent(self, workspace_id: str, campaign_id: str, *, since: datetime, limit: int) -> Sequence[Dispatch]:
        """Return a campaign's latest dispatches that are no more `dispatching`, newest first."""
        return self._all(
            Dispatch, "recent", workspace_id=workspace_id, campaign_id=campaign_id, since=to_text(since), limit=limit
        )

    def groups(self, workspace_id: str, campaign_id: str) -> Sequence[DispatchGroup]:
        """Return what a campaign's dispatches came to, the most frequent first."""
        return self._all(DispatchGroup, "groups", workspace_id=workspace_id, campaign_id=campaign_id)

    def abandoned(self, epoch: int, *, limit: int) -> Sequence[Dispatch]:
        """Return those `dispatching` of epochs below this one, in all workspaces, oldest first."""
        return self._all(Dispatch, "abandoned", epoch=epoch, limit=limit)

    def unknown(self, workspace_id: str | None, *, limit: int, after: Dispatch | None = None) -> Sequence[Dispatch]:
        """Return the unknown ones of one workspace or of all, oldest first, those after one of them."""
        after_at, after_id = ("", "") if after is None else (to_text(after.created_at), after.id)
        return self._all(
            Dispatch, "unknown", workspace_id=workspace_id, after_at=after_at, after_id=after_id, limit=limit
        )


class Calls(Table):
    """Call records."""

    queries = load("calls")
    what = "call"

    def get(self, workspace_id: str, call_id: str) -> Call | None:
        """Return a call."""
        return self._one(Call, "get", workspace_id=workspace_id, call_id=call_id)

    def find(self, call_id: str) -> Call | None:
        """Return a call of whatever workspace."""
        return self._one(Call, "find", call_id=call_id)

    def by_provider_id(self, workspace_id: str, provider_call_id: str) -> Call | None:
        """Return the newest call with this identifier of a provider."""
        return self._one(Call, "by_provider_id", workspace_id=workspace_id, provider_call_id=provider_call_id)

    def insert(self, call: Call) -> None:
        """Write a new call."""
        self._change("insert", to_row(call))

    def update(self, call: Call) -> None:
        """Write over a call; its agent and recipient stay as they are."""
        self._change_one("update", to_row(call))

    def open_between(self, workspace_id: str, agent_id: str, to: str) -> Call | None:
        """Return the oldest open call of this agent to this number."""
        return self._one(Call, "open_between", workspace_id=workspace_id, agent_id=agent_id, to_number=to)


class Messages(Table):
    """Single messages."""

    queries = load("messages")
    what = "message"

    def get(self, workspace_id: str, message_id: str) -> Message | None:
        """Return a message."""
        return self._one(Message, "get", workspace_id=workspace_id, message_id=message_id)

    def insert(self, message: Message) -> None:
        """Write a new message."""
        self._change("insert", to_row(message))

    def update(self, message: Message) -> None:
        """Write over a message."""
        self._change_one("update", to_row(message))

    def last_reply(self, workspace_id: str, phone: str, purpose: ReplyPurpose) -> datetime | None:
        """Return when the newest answer of this purpose was made for a number."""
        [row] = self._rows("last_reply", workspace_id=workspace_id, phone=phone, purpose=purpose)
        return None if row["created_at"] is None else from_text(row["created_at"])


class Inbound(Table):
    """Messages that people wrote back."""

    queries = load("inbound")
    what = "inbound message"

    def insert(self, message: InboundMessage) -> None:
        """Write a message."""
        self._change("insert", to_row(message))

    def last_keyword(self, workspace_id: str, phone: str, keyword: Keyword) -> datetime | None:
        """Return when a number last wrote a keyword."""
        [row] = self._rows("last_keyword", workspace_id=workspace_id, phone=phone, keyword=keyword)
        return None if row["written_at"] is None else from_text(row["written_at"])

    def list(self, workspace_id: str, *, unclear: bool = False, limit: int = 1000) -> Sequence[InboundMessage]:
        """Return the newest messages, or those that are unclear, newest first."""
        query = "list_unclear" if unclear else "list"
        return self._all(InboundMessage, query, workspace_id=workspace_id, limit=limit)

    def replied_since(self, workspace_id: str, phone: str, since: datetime) -> bool:
        """Return whether a number has written at or after a moment."""
        return self._row("replied_since", workspace_id=workspace_id, phone=phone, since=to_text(since)) is not None
