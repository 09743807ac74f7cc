"""What a transaction writes, recorded as it is written: a check then need not read the whole database."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

import attrs

from outreach.models.call import Call
from outreach.models.campaign import Campaign, Counters, Recipient
from outreach.models.dispatch import Dispatch
from outreach.models.message import Message
from outreach.models.states import CampaignStatus
from outreach.storage.unit_of_work import Transaction

RecipientKey = tuple[str, int]
"""Campaign and position."""


@attrs.define(kw_only=True)
class Writes:
    """What one transaction has written in one workspace.

    Attributes:
        loaded: Campaigns that got recipients or lost some: to be read anew.
        campaigns: Campaigns whose row was written, counters included.
        statuses: The statuses that campaigns were given, in order.
        recipients: Recipients that were written, each as it is at the end.
        dispatches: Dispatches that were written, each as it is at the end, in the order of their first write.
    """

    loaded: set[str] = attrs.field(factory=set)
    campaigns: dict[str, None] = attrs.field(factory=dict)
    statuses: list[tuple[str, CampaignStatus, str | None]] = attrs.field(factory=list)
    recipients: dict[RecipientKey, Recipient] = attrs.field(factory=dict)
    dispatches: dict[str, Dispatch] = attrs.field(factory=dict)
    calls: dict[str, Call] = attrs.field(factory=dict)
    messages: dict[str, Message] = attrs.field(factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether the transaction has written nothing to the ledger."""
        return not any(attrs.astuple(self, recurse=False))


_TABLES: Final = (
    "workspaces",
    "keys",
    "agents",
    "trunks",
    "numbers",
    "flows",
    "settings",
    "call_settings",
    "register",
    "campaigns",
    "recipients",
    "dispatches",
    "calls",
    "messages",
    "inbound",
    "work",
    "leases",
    "runs",
    "requests",
    "audit",
)


class _RecordingTable:
    """A table whose writes are recorded.

    Args:
        table: The table.
        notes: By name of a method, what is done with its arguments once it has returned.
    """

    def __init__(self, table: Any, notes: dict[str, Callable[..., None]]) -> None:
        self._table = table
        for name, note in notes.items():
            setattr(self, name, _then(getattr(table, name), note))

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._table, name)
        # Found at once the next time.
        setattr(self, name, method)
        return method


def _then(method: Callable[..., Any], note: Callable[..., None]) -> Callable[..., Any]:
    def noted(*args: Any, **kwargs: Any) -> Any:
        result = method(*args, **kwargs)
        note(*args)
        return result

    return noted


class RecordingTransaction:
    """A transaction whose writes to the ledger are recorded; the rest is the transaction's own."""

    def __init__(self, tx: Transaction) -> None:
        self._of: defaultdict[str, Writes] = defaultdict(Writes)
        self._tx = tx
        for name in _TABLES:
            setattr(self, name, getattr(tx, name))
        self.campaigns = _RecordingTable(
            tx.campaigns,
            {
                "publish": lambda campaign: self._of[campaign.workspace_id].loaded.add(campaign.id),
                "update": self._campaign,
                "add_counters": self._counters,
            },
        )
        self.recipients = _RecordingTable(
            tx.recipients,
            {
                "put": self._recipient,
                "insert": self._loaded,
                "delete_stopped_since": self._loaded,
            },
        )
        self.dispatches = _RecordingTable(tx.dispatches, {"insert": self._dispatch, "update": self._dispatch})
        setattr(self.dispatches, "open", self._open)  # noqa: B010 - a table has methods of its own
        self.calls = _RecordingTable(tx.calls, {"insert": self._call, "update": self._call})
        self.messages = _RecordingTable(tx.messages, {"insert": self._message, "update": self._message})

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)

    def fresh(self) -> Transaction:
        """Begin anew, and return this as what an operation is given."""
        self._of = defaultdict(Writes)
        return cast("Transaction", self)

    @property
    def writes(self) -> Mapping[str, Writes]:
        """What has been written since it was begun anew, by workspace."""
        return self._of

    def _loaded(self, workspace_id: str, campaign_id: str, *_: object) -> None:
        self._of[workspace_id].loaded.add(campaign_id)

    def _counters(self, workspace_id: str, campaign_id: str, change: Counters) -> None:
        self._of[workspace_id].campaigns[campaign_id] = None

    def _campaign(self, campaign: Campaign) -> None:
        writes = self._of[campaign.workspace_id]
        writes.campaigns[campaign.id] = None
        writes.statuses.append((campaign.id, campaign.status, campaign.pause_reason))

    def _recipient(self, workspace_id: str, recipient: Recipient) -> None:
        self._of[workspace_id].recipients[recipient.campaign_id, recipient.position] = recipient

    def _open(self, dispatches: Sequence[Dispatch]) -> Sequence[Dispatch]:
        opened = self._tx.dispatches.open(dispatches)
        for dispatch in opened:
            self._dispatch(dispatch)
        return opened

    def _dispatch(self, dispatch: Dispatch) -> None:
        self._of[dispatch.workspace_id].dispatches[dispatch.id] = dispatch

    def _call(self, call: Call) -> None:
        self._of[call.workspace_id].calls[call.id] = call

    def _message(self, message: Message) -> None:
        self._of[message.workspace_id].messages[message.id] = message
