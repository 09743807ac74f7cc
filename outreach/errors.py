"""The errors that this package raises, all under one root, and `Problem`, which says why not.

    OutreachError
    +-- ConfigError                     the engine or an adapter is misconfigured
    +-- InvalidRequest                  the request breaks a rule; `details` names each place
    +-- Unauthorized                    the API key is missing, malformed, unknown or revoked
    +-- Forbidden                       the workspace may not do this now
    |   +-- WorkspaceUnavailable
    |   +-- SmsCampaignsDisabled
    |   +-- InsufficientScope           the API key lacks the scope of the operation
    |   +-- CallbackRejected            a callback is not from the provider, or is too old
    +-- NotFound                        the workspace has no such object
    +-- Conflict                        the object's state does not allow this
    |   +-- AgentInactive
    |   +-- AgentNotOutbound
    |   +-- RecipientUnsubscribed
    |   +-- CallInProgress
    |   +-- IllegalTransition           has the state and the moves that it allows
    |   +-- CannotStart                 has every reason, by field and in words
    |   +-- AwaitsApproval              another person has to approve it
    |   +-- AccountMissing              a live workspace has no account at this provider
    +-- RateLimited                     the workspace's request limit is used up
    +-- LoginThrottled                  too many logins have failed
    +-- RequestInProgress               another request with the same idempotency key is still running
    +-- LeaseLost                       this worker no longer owns the work
    +-- StorageError                    the database cannot be used
        +-- StorageBusy                 another process has been writing for long
        +-- StorageFull                 the disk is full
        +-- StorageUnreachable          its server does not answer
        +-- ArchiveUnavailable          a ledger archive is not there
        +-- DatabaseMissing
        +-- DatabaseNewer
        +-- DatabaseOlder               it has to be migrated first
        +-- DatabaseInUse               another process has it open
        +-- DispatchRefused             this database must not be dispatched from here
            +-- DatabaseReplaced        another file was put in its place
                +-- DatabaseLogDeleted  its log was deleted while it is open

Every error has a stable machine-readable `code` and a message that says what was wrong, where, and what to do.
`outreach_server` maps errors to HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, ClassVar, Literal

import attrs

Severity = Literal["critical", "warning", "info"]
"""`critical`: nothing is sent, or soon, or data are in danger. `warning`: a part waits for a person. `info`: good to
know, and nothing has to be done."""


@attrs.frozen(kw_only=True)
class Problem:
    """Why something is not possible, or will go wrong.

    Errors, start checks, blockers, the status and the diagnosis all say it with this type. Each fills in what it knows.

    Attributes:
        message: What is wrong, and what would be right, in sentences.
        path: What it is about. Of a request: a dotted path with indexes in brackets, such as
            `recipients[3].phone_number`, or a query parameter's name. Of the status: an id, a number or a name. Of the
            diagnosis: a file, a URL, or `account` and its id. Empty for the whole.
        code: What it is, in a word that does not change; empty if the path says enough.
        severity: How urgent it is; None if the list that has it says that.
        until: When it ends by itself; None if unknown, or if a person has to act.
        workspace_id: The workspace; None for the whole system, or if the caller has named it.
        commands: What fixes it, in this order. A word in capital letters stands for what only a person knows.
        looks: What shows more, if a person has to decide, or somebody else has to act.
    """

    message: str
    path: str = ""
    code: str = ""
    severity: Severity | None = None
    until: datetime | None = None
    workspace_id: str | None = None
    commands: Sequence[str] = ()
    looks: Sequence[str] = ()

    def with_commands(self, change: Callable[[str], Iterable[str]]) -> Problem:
        """Return the same with other commands: `change` returns what takes the place of each."""
        commands, looks = ([other for one in each for other in change(one)] for each in (self.commands, self.looks))
        return attrs.evolve(self, commands=commands, looks=looks)


class OutreachError(Exception):
    """The root of this package's errors."""

    code: ClassVar[str] = "internal_error"

    _words_are_for_operators: ClassVar[bool] = False
    """Whether log lines have the message, its quotes and long numbers masked: those of the others quote a request."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what a copy is made of, also in another process: a task queue hands its errors over."""
        # Not by calling the class, as exceptions do by themselves: many take other arguments than the message.
        return _copied, (type(self), self.args, self.__dict__)


def _copied(kind: type[OutreachError], arguments: tuple[object, ...], fields: dict[str, Any]) -> OutreachError:
    made = kind.__new__(kind, *arguments)
    made.__dict__.update(fields)
    return made


class ConfigError(OutreachError):
    """The engine, the server or an adapter is misconfigured."""

    code = "config_error"
    _words_are_for_operators = True


class InvalidRequest(OutreachError):
    """The request breaks one or more rules; nothing was written.

    Args:
        message: A summary; by default built from the details.
        details: One entry for each wrong place.
    """

    code = "invalid_request"

    def __init__(self, message: str | None = None, *, details: Iterable[Problem] = ()) -> None:
        self.details: Sequence[Problem] = tuple(details)
        if message is None:
            message = "; ".join(f"{d.path}: {d.message}" if d.path else d.message for d in self.details[:3])
            more = len(self.details) - 3
            if more > 0:
                message += f"; and {more} more"
        super().__init__(message or "The request is not valid.")

    @classmethod
    def at(cls, path: str, message: str) -> InvalidRequest:
        """Return the error for one place."""
        return cls(details=[Problem(path=path, message=message)])


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
    """SMS campaigns are not enabled for the workspace (docs/interface.md#4.3, rule 1)."""

    code = "sms_campaigns_disabled"

    def __init__(
        self,
        message: str = "SMS campaigns are not enabled for this workspace. An organization owner can turn them on.",
    ) -> None:
        super().__init__(message)


class InsufficientScope(Forbidden):
    """The caller has none of the scopes that allow the operation.

    Args:
        needed: The scopes that allow it: one of them is enough.
        of_key: Whether it was asked with an API key, not as an identity of the host.
    """

    code = "insufficient_scope"

    def __init__(self, needed: Iterable[str], *, of_key: bool = True) -> None:
        self.needed = tuple(needed)
        scopes = " or ".join(self.needed)
        super().__init__(
            f"This API key may not do this: it needs the scope {scopes}. "
            "Create another key for it: outreach-server keys create WORKSPACE_ID --scope NAME."
            if of_key
            else f"You may not do this here: it needs the scope {scopes}."
        )


class CallbackRejected(Forbidden):
    """A callback is not from the provider, too old or unreadable; it changed nothing."""

    code = "callback_rejected"


class NotFound(OutreachError):
    """The workspace has no such object; another workspace's objects count as absent."""

    code = "not_found"

    def __init__(self, kind: str, identifier: str) -> None:
        where = "" if kind == "workspace" else " in this workspace"
        super().__init__(f"There is no {kind} {identifier!r}{where}.")
        self.kind = kind
        self.identifier = identifier


class Conflict(OutreachError):
    """The request conflicts with the current state of an object."""

    code = "conflict"


class AgentInactive(Conflict):
    """The agent is inactive."""

    code = "agent_inactive"


class AgentNotOutbound(Conflict):
    """The agent is inbound and `allow_outbound` is not set (docs/interface.md#4.1)."""

    code = "agent_not_outbound"


class RecipientUnsubscribed(Conflict):
    """The number is unsubscribed from this channel."""

    code = "recipient_unsubscribed"


class CallInProgress(Conflict):
    """The same agent already has an open call to the same number."""

    code = "call_in_progress"


class IllegalTransition(Conflict):
    """The transition table has no such move.

    Attributes:
        state: The current state.
        move: The requested move.
        allowed: The moves that this state allows, sorted.
        hint: What to do instead; empty if there is nothing to say.
    """

    code = "illegal_transition"

    def __init__(self, kind: str, state: str, move: str, allowed: Iterable[str], hint: str = "") -> None:
        self.state = state
        self.move = move
        self.allowed = tuple(sorted(allowed))
        self.hint = hint
        choices = ", ".join(self.allowed) or "none, this state is final"
        message = f"A {kind} that is {state} cannot {move}. Moves allowed from here: {choices}."
        super().__init__(f"{message} {hint}".rstrip())


class CannotStart(Conflict):
    """The campaign cannot start as it is.

    Attributes:
        details: Each problem with its field, named as in `CampaignUpdate`; `agent.is_active` is the agent's,
            `account.twilio` the workspace's account at that provider.
        reasons: The sentences.
    """

    code = "cannot_start"

    def __init__(self, details: Iterable[Problem]) -> None:
        self.details = tuple(details)
        self.reasons = tuple(detail.message for detail in self.details)
        super().__init__("The campaign cannot start: " + " ".join(self.reasons))


class AwaitsApproval(Conflict):
    """A person starts or changes what another person has to approve (docs/users.md#approval-of-starts)."""

    code = "awaits_approval"


class AccountMissing(Conflict):
    """A live workspace has no account for a message or call.

    Attributes:
        workspace_id: The workspace.
        provider: The carrier or voice provider at which it needs one.
        connectable: Whether an account there would fix it: not for the simulator, which is for sandboxes, nor where
            the provider has no adapter here.
    """

    def __init__(self, message: str, *, workspace_id: str, provider: str, connectable: bool) -> None:
        self.workspace_id = workspace_id
        self.provider = provider
        self.connectable = connectable
        super().__init__(message)


class RateLimited(OutreachError):
    """The workspace's request limit is used up (docs/interface.md#8).

    Attributes:
        limit: Requests per minute.
        retry_after_seconds: Seconds until the next request is accepted.
    """

    code = "rate_limited"

    def __init__(self, *, limit: int, retry_after_seconds: int) -> None:
        self.limit = limit
        self.retry_after_seconds = retry_after_seconds
        super().__init__(
            f"The workspace's limit of {limit} requests a minute is used up. Try again in {retry_after_seconds} s."
        )


class LoginThrottled(OutreachError):
    """Too many logins of this account, or from this network, have failed, or are being checked; nothing was checked.

    Attributes:
        retry_after_seconds: Seconds until the next attempt is accepted.
    """

    code = "login_throttled"

    def __init__(self, *, retry_after_seconds: int, problem: str = "Too many failed logins.") -> None:
        self.retry_after_seconds = retry_after_seconds
        super().__init__(f"{problem} Try again in {retry_after_seconds} s.")


class RequestInProgress(OutreachError):
    """Another request with the same idempotency key is still running after the longest wait."""

    code = "request_in_progress"

    def __init__(self, *, retry_after_seconds: int = 1) -> None:
        self.retry_after_seconds = retry_after_seconds
        super().__init__(
            "A request with this idempotency key is still running. Try again with the same key and content."
        )


class LeaseLost(OutreachError):
    """This worker no longer owns the work; it commits no new intent."""

    code = "lease_lost"
    _words_are_for_operators = True


class StorageError(OutreachError):
    """The database cannot be used."""

    code = "storage_error"
    _words_are_for_operators = True


class StorageBusy(StorageError):
    """The database cannot be written now, because another process has been writing for long. Nothing was changed."""

    code = "storage_busy"


class StorageFull(StorageError):
    """The disk that the database is on is full. Nothing was changed."""

    code = "storage_full"


class StorageUnreachable(StorageError):
    """The database's server cannot be reached, or gives no answer, for now. Nothing was changed."""

    code = "storage_unreachable"


class ArchiveUnavailable(StorageError):
    """A file that campaigns were moved into is not there, is another one, or is in use; the message names it.

    Attributes:
        command: What fixes it, as the message says too; None if no command does.
    """

    code = "archive_unavailable"

    def __init__(self, message: str, *, command: str | None = None) -> None:
        self.command = command
        super().__init__(message)


class DatabaseMissing(StorageError):
    """The database does not exist, and was not to be created."""

    code = "database_missing"


class DatabaseNewer(StorageError):
    """The database was written by a newer version of this package."""

    code = "database_newer"


class DatabaseOlder(StorageError):
    """The database was written by an older version of this package, and was not to be migrated."""

    code = "database_older"


class DatabaseInUse(StorageError):
    """Another process has the database open, which the operation does not allow."""

    code = "database_in_use"


class DispatchRefused(StorageError):
    """Dispatch is disabled for this database here, for example on a network file system.

    Attributes:
        reason: In one word: `network_file_system`, `lock` (the lock file cannot be taken or written), `note` (the file
            with the high-water mark cannot), `damaged`, `replaced`, `log_deleted`, `copied` (by `db copy`),
            `secret_key` (it opens no account), or a reason of an application's own storage.
    """

    code = "dispatch_refused"

    def __init__(self, message: str, *, reason: str = "refused") -> None:
        super().__init__(message)
        self.reason = reason


class DatabaseReplaced(DispatchRefused):
    """The database file was replaced while the log of the previous one was there."""

    code = "database_replaced"
    _reason: ClassVar[str] = "replaced"

    def __init__(self, message: str) -> None:
        super().__init__(message, reason=self._reason)


class DatabaseLogDeleted(DatabaseReplaced):
    """The log beside the database file, or its index, was deleted or replaced while the file is open."""

    code = "database_log_deleted"
    _reason = "log_deleted"
