"""The errors that this package raises, all under one root.

    OutreachError
    +-- ConfigError                 the engine or an adapter was set up wrongly
    +-- InvalidRequest              what was asked for breaks a rule; `details` names each place
    +-- Unauthorized                the API key is missing, malformed, unknown or revoked
    +-- Forbidden                   the workspace may not do this now
    |   +-- WorkspaceUnavailable
    |   +-- SmsCampaignsDisabled
    |   +-- CallbackRejected        what claims to come from a provider does not, or is too old
    +-- NotFound                    no such thing in this workspace
    +-- Conflict                    the thing is there, but not in a state that allows this
    |   +-- AgentInactive
    |   +-- AgentNotOutbound
    |   +-- RecipientUnsubscribed
    |   +-- CallInProgress
    |   +-- IllegalTransition       carries the state and the moves that it allows
    |   +-- CannotStart             carries every reason, by field and in words
    |   +-- AccountMissing          a live workspace has nothing to send by at this provider
    +-- RateLimited                 the workspace's request limit is used up
    +-- RequestInProgress           another request with the same idempotency key still runs
    +-- LeaseLost                   this worker no longer owns the work
    +-- StorageError                the database cannot be used
        +-- DatabaseMissing
        +-- DatabaseNewer
        +-- DatabaseOlder           it has to be brought up to date first
        +-- DatabaseInUse           another process has it open
        +-- DispatchRefused         this database must not be dispatched from here
            +-- DatabaseReplaced    another file was put in its place

Every error has a stable machine-readable `code` and a message for people: what was wrong, where, what to
do. How an error is shown over HTTP is decided in `outreach_server`, not here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

import attrs


@attrs.frozen
class ErrorDetail:
    """One place in a request that breaks a rule.

    Attributes:
        path: Where, as a dotted path with indexes in brackets: `recipients[3].phone_number`; a query
            parameter's name; or the empty string for the request as a whole.
        message: What is wrong there, and what would be right.
    """

    path: str
    message: str


class OutreachError(Exception):
    """Anything this package raises on purpose."""

    code: ClassVar[str] = "internal_error"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class ConfigError(OutreachError):
    """The engine, the server or an adapter was set up wrongly."""

    code = "config_error"


class InvalidRequest(OutreachError):
    """What was asked for breaks one or more rules; nothing was written.

    Args:
        message: A summary for people; built from the details when left out.
        details: One entry for each place that is wrong.
    """

    code = "invalid_request"

    def __init__(self, message: str | None = None, *, details: Iterable[ErrorDetail] = ()) -> None:
        self.details: Sequence[ErrorDetail] = tuple(details)
        if message is None:
            message = "; ".join(f"{d.path}: {d.message}" if d.path else d.message for d in self.details[:3])
            more = len(self.details) - 3
            if more > 0:
                message += f"; and {more} more"
        super().__init__(message or "The request is not valid.")

    @classmethod
    def at(cls, path: str, message: str) -> InvalidRequest:
        """Return the error for one place."""
        return cls(details=[ErrorDetail(path, message)])


class Unauthorized(OutreachError):
    """The API key is missing, malformed, unknown or revoked."""

    code = "unauthorized"


class Forbidden(OutreachError):
    """The workspace may not do this now."""

    code = "forbidden"


class WorkspaceUnavailable(Forbidden):
    """The workspace is suspended, paywalled or unavailable (docs/interface.md#5)."""

    code = "workspace_unavailable"


class SmsCampaignsDisabled(Forbidden):
    """SMS campaigns are not turned on for the workspace (docs/interface.md#4.3, rule 1)."""

    code = "sms_campaigns_disabled"


class CallbackRejected(Forbidden):
    """A callback is not the provider's, is too old, or cannot be read; it changed nothing."""

    code = "callback_rejected"


class NotFound(OutreachError):
    """There is no such thing in this workspace; another workspace's things count as absent."""

    code = "not_found"

    def __init__(self, kind: str, identifier: str) -> None:
        where = "" if kind == "workspace" else " in this workspace"
        super().__init__(f"There is no {kind} {identifier!r}{where}.")
        self.kind = kind
        self.identifier = identifier


class Conflict(OutreachError):
    """The request conflicts with the present state of what it names."""

    code = "conflict"


class AgentInactive(Conflict):
    """The agent is switched off."""

    code = "agent_inactive"


class AgentNotOutbound(Conflict):
    """The agent is inbound and `allow_outbound` is not set (docs/interface.md#4.1)."""

    code = "agent_not_outbound"


class RecipientUnsubscribed(Conflict):
    """The number is on the workspace's unsubscribe register for this channel."""

    code = "recipient_unsubscribed"


class CallInProgress(Conflict):
    """The same agent already has an open call to the same number."""

    code = "call_in_progress"


class IllegalTransition(Conflict):
    """The transition table has no such move.

    Attributes:
        state: The state now.
        move: What was asked for.
        allowed: The moves that this state allows, sorted.
    """

    code = "illegal_transition"

    def __init__(self, kind: str, state: str, move: str, allowed: Iterable[str]) -> None:
        self.state = state
        self.move = move
        self.allowed = tuple(sorted(allowed))
        choices = ", ".join(self.allowed) or "none, this state is final"
        super().__init__(f"A {kind} that is {state} cannot {move}. Moves allowed from here: {choices}.")


class CannotStart(Conflict):
    """The campaign cannot start as it is.

    Attributes:
        details: Each thing that is in the way: the field that says it, and a sentence. A field of the campaign has the
            name that `CampaignUpdate` gives it; `agent.is_active` is the agent's, `account.twilio` the workspace's
            account at that provider.
        reasons: The sentences.
    """

    code = "cannot_start"

    def __init__(self, details: Iterable[ErrorDetail]) -> None:
        self.details = tuple(details)
        self.reasons = tuple(detail.message for detail in self.details)
        super().__init__("The campaign cannot start: " + " ".join(self.reasons))


class AccountMissing(Conflict):
    """A live workspace has no account that a message or call could go by.

    Attributes:
        workspace_id: The workspace.
        provider: The carrier or voice provider at which it needs one.
    """

    def __init__(self, message: str, *, workspace_id: str, provider: str) -> None:
        self.workspace_id = workspace_id
        self.provider = provider
        super().__init__(message)


class RateLimited(OutreachError):
    """The workspace's request limit is used up (docs/interface.md#8).

    Attributes:
        limit: Requests a minute.
        retry_after_seconds: When the next request will be let in.
    """

    code = "rate_limited"

    def __init__(self, *, limit: int, retry_after_seconds: int) -> None:
        self.limit = limit
        self.retry_after_seconds = retry_after_seconds
        super().__init__(
            f"The workspace's limit of {limit} requests a minute is used up. Try again in {retry_after_seconds} s."
        )


class RequestInProgress(OutreachError):
    """Another request with the same idempotency key has not finished within the wait."""

    code = "request_in_progress"

    def __init__(self, *, retry_after_seconds: int = 1) -> None:
        self.retry_after_seconds = retry_after_seconds
        super().__init__(
            "A request with this idempotency key is still running. Try again with the same key and content."
        )


class LeaseLost(OutreachError):
    """This worker no longer owns the work; it commits no new intent."""

    code = "lease_lost"


class StorageError(OutreachError):
    """The database cannot be used."""

    code = "storage_error"


class StorageBusy(StorageError):
    """The database cannot be written at the moment: another process has been writing for long. Nothing was changed."""

    code = "storage_busy"


class DatabaseMissing(StorageError):
    """There is no database, and none was to be created."""

    code = "database_missing"


class DatabaseNewer(StorageError):
    """The database was written by a newer version of this package."""

    code = "database_newer"


class DatabaseOlder(StorageError):
    """The database was written by an older version of this package, and was not to be brought up to date."""

    code = "database_older"


class DatabaseInUse(StorageError):
    """Another process has the database open, which what was asked for does not allow."""

    code = "database_in_use"


class DispatchRefused(StorageError):
    """Nothing may be dispatched from this database here, for example on a network file system.

    Attributes:
        reason: Why, in one word: `network_file_system`, `lock` (its file cannot be taken or written), `note` (the same
            of the note beside the database), `damaged`, `replaced`, or what an application's own storage says.
    """

    code = "dispatch_refused"

    def __init__(self, message: str, *, reason: str = "refused") -> None:
        super().__init__(message)
        self.reason = reason


class DatabaseReplaced(DispatchRefused):
    """Another file was put in the place of the database, beside the log of the one that was there."""

    code = "database_replaced"

    def __init__(self, message: str) -> None:
        super().__init__(message, reason="replaced")
