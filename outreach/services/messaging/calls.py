"""Single calls."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from functools import partial
from typing import Any, Final, get_args

import anyio

from outreach.errors import InvalidRequest, NotFound, Problem, StorageError
from outreach.ledger.campaigns.transitions import require_account
from outreach.ledger.common import campaign_of, existing, require_available, workspace_of
from outreach.ledger.sending import singles
from outreach.ledger.settling import verdicts
from outreach.models.base import Page
from outreach.models.call import Call, CallOutcomeFilter, CallVerdict, NewCall, NewCallOutcome
from outreach.models.fields import UUID, OneOf, check_field, check_value
from outreach.models.metadata import metadata_pair
from outreach.models.reports import ProviderFailure
from outreach.models.states import CallStatus
from outreach.models.work import IdempotencyKey, WorkUnit
from outreach.rules.phones import canonical_phone
from outreach.rules.segments import as_text, text_problem
from outreach.services.context import ServiceContext, check_kind
from outreach.services.idempotency import Idempotency, IdempotencyGuard
from outreach.services.lists import PageRequest, iterate
from outreach.services.messaging.failures import call_failure
from outreach.storage.unit_of_work import Transaction

_POLL_SECONDS: Final = 0.02
_LISTENING_POLL_SECONDS: Final = 0.25
"""How often a call is looked at where other processes' commits are notified."""
_WAITING: Final = {CallStatus.QUEUED, CallStatus.DISPATCHING}


class Calls:
    """Single calls of workspaces (docs/interface.md#4.1)."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._keys = Idempotency(context)

    async def create(
        self,
        workspace_id: str,
        new: NewCall,
        *,
        idempotency_key: IdempotencyKey[Call] = None,
        actor: str = "library",
    ) -> Call:
        """Queue a call and wait briefly for the provider to accept it.

        The returned call has a `provider_call_id` if the provider accepted it in time.

        Args:
            workspace_id: The workspace.
            new: The call.
            idempotency_key: A name for this call, such as `order-42`: for a day, the same key returns this call instead
                of placing another.
            actor: Who calls; a person of the console is recorded in the audit trail.

        Raises:
            NotFound: The workspace has no such agent.
            InvalidRequest: A variable is unknown to the agent, or the key was used with other content.
            RequestInProgress: The first call with this key is still running.
            Conflict: The agent is inactive or may not place calls, a live workspace has no account at its provider, the
                number is unsubscribed, or the agent is already calling it.
        """
        return await self._keys.model(
            workspace_id,
            "calls.create",
            idempotency_key,
            content=new,
            make=lambda once: self._create(workspace_id, new, actor, once),
            find=lambda tx, call_id: tx.calls.existing(workspace_id, call_id),
        )

    async def _create(self, workspace_id: str, new: NewCall, actor: str, once: IdempotencyGuard[Call]) -> Call:
        check_kind("new", new, NewCall)
        context = self._context
        call_id = context.ids()
        here = context.dispatching()

        def operation(tx: Transaction) -> tuple[Call, bool]:
            now = context.now()
            # Another process may place it.
            waits = here or any(worker.until > now for worker in tx.workers.list())
            workspace = workspace_of(tx, workspace_id)
            require_available(workspace)
            agent = tx.agents.existing(workspace_id, new.agent_id)
            # An invalid request is reported before the state of the agent.
            variables = _texts_of(new, agent.placeholders)
            singles.require_outbound_agent(agent)
            require_account(tx, workspace, agent.provider, context.adapters)
            call = Call(
                id=call_id,
                workspace_id=workspace_id,
                agent_id=agent.id,
                provider=agent.provider,
                # Normalised, so that an opt-out holds in every notation; a number that the numbering plans do not know
                # is dialled as given, because the interface's pattern decides.
                to=canonical_phone(new.to, workspace.default_region) or new.to,
                from_number=agent.from_number,
                variables=variables,
                external_id=new.external_id,
                metadata=deepcopy(new.metadata),
                created_at=now,
            )
            singles.create_call(tx, call, now=now)
            singles.note_person(tx, call, "call.create", now=now, actor=actor)
            once.finish(tx, call, settled=not waits)
            return call, waits

        call, waits = await context.storage.write_in(workspace_id, operation)
        context.wake(WorkUnit("call", workspace_id, call.id))
        if not waits:
            return call
        # The call is queued from here on: a caller that got an error of the database would place it a second time.
        try:
            with suppress(StorageError):
                call = await self._wait_for_acceptance(call)
        finally:
            # Also if the client has gone: a retry must not wait for an answer that never comes.
            with anyio.CancelScope(shield=True), suppress(StorageError):
                await context.storage.write_in(workspace_id, lambda tx: once.finish(tx, call))
        return call

    async def get(self, workspace_id: str, identifier: str) -> Call:
        """Return a call by our id or by the provider's.

        Raises:
            NotFound: The workspace has no such call.
        """
        return await self._context.storage.read(lambda tx: _call_of(tx, workspace_id, identifier))

    async def list(
        self,
        workspace_id: str,
        *,
        campaign_id: str | None = None,
        agent_id: str | None = None,
        status: CallStatus | None = None,
        outcome: CallOutcomeFilter | None = None,
        external_id: str | None = None,
        metadata: str | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> Page[Call]:
        """Return a page of calls, newest first; those that pass all given filters.

        Args:
            workspace_id: The workspace.
            campaign_id: Only those of this campaign; None for all, single calls included.
            agent_id: Only those of this agent; None for all.
            status: Only those with this status; None for all.
            outcome: Only those with this outcome, or with `unknown` those without one; None for all.
            external_id: Only the single calls that the application knows by this id; None for all.
            metadata: Only the single calls with this pair in their metadata, such as `team=7`; None for all.
            after: The `next` of the page before; None for the first page.
            limit: The most items, up to 1,000.

        Raises:
            NotFound: The workspace does not exist, or has no such campaign or agent.
            InvalidRequest: An argument is invalid.
        """
        if status is not None:
            check_value("status", status, OneOf(tuple(CallStatus)))
        if outcome is not None:
            check_value("outcome", outcome, OneOf(get_args(CallOutcomeFilter)))
        check_field(NewCall, "external_id", external_id)
        if metadata is not None:
            check_value("metadata", metadata, metadata_pair)
        page_request = PageRequest("calls", workspace_id, after=after, limit=limit)

        def operation(tx: Transaction) -> Sequence[Call]:
            workspace_of(tx, workspace_id)
            if campaign_id is not None:
                campaign_of(tx, workspace_id, campaign_id)
            if agent_id is not None:
                tx.agents.existing(workspace_id, agent_id)
            return tx.calls.list(
                workspace_id,
                campaign_id=campaign_id,
                agent_id=agent_id,
                status=status,
                outcome=outcome,
                external_id=external_id,
                metadata=metadata,
                after=page_request.cursor,
                limit=limit + 1,
            )

        return page_request.page(await self._context.storage.read(operation), lambda one: one.id)

    def iter_all(
        self,
        workspace_id: str,
        *,
        campaign_id: str | None = None,
        agent_id: str | None = None,
        status: CallStatus | None = None,
        outcome: CallOutcomeFilter | None = None,
        external_id: str | None = None,
        metadata: str | None = None,
    ) -> AsyncIterator[Call]:
        """Iterate over calls, newest first; see `list`."""
        listed = partial(
            self.list,
            workspace_id,
            campaign_id=campaign_id,
            agent_id=agent_id,
            status=status,
            outcome=outcome,
            external_id=external_id,
            metadata=metadata,
        )
        return iterate(listed)

    async def get_anywhere(self, identifier: str) -> Call:
        """Return a call of any workspace, for operator commands that name a call alone.

        Raises:
            NotFound: No call has this id.
        """
        return await self._context.storage.read(lambda tx: existing(tx.calls.find(identifier), "call", identifier))

    async def _wait_for_acceptance(self, call: Call) -> Call:
        context = self._context
        with anyio.move_on_after(context.config.acceptance_wait_seconds):
            while call.status in _WAITING:
                await context.wake_ups.wait(
                    "calls", poll_seconds=_POLL_SECONDS, listening_poll_seconds=_LISTENING_POLL_SECONDS
                )
                call = await self.get(call.workspace_id, call.id)
        return call

    async def transcript(self, workspace_id: str, identifier: str) -> str | None:
        """Return what was said in a call, a line a turn; None if its provider tells none, or it was erased.

        It is that of the call that `get` returns. A call whose campaign was archived has it in the campaign's export.

        Raises:
            NotFound: The workspace has no such call.
        """

        def operation(tx: Transaction) -> str | None:
            call = _call_of(tx, workspace_id, identifier)
            return tx.calls.transcripts(workspace_id, [call.id]).get(call.id)

        return await self._context.storage.read(operation)

    async def set_outcome(
        self,
        workspace_id: str,
        identifier: str,
        outcome: CallVerdict,
        *,
        summary: str | None = None,
        actor: str = "library",
    ) -> Call:
        """Give an answered call that has ended its outcome, such as that of an analyser that needs minutes.

        It replaces an unknown outcome, and `positive`, `negative`, `callback` or `voicemail` of the provider or the
        analyser; it is final. In a campaign the contact's result and the counters follow, also when the campaign has
        ended; nobody is called again, and a retry that waits after a voicemail is dropped if a person answered. The
        same outcome once more changes at most the summary, so that a repetition is safe.

        Args:
            workspace_id: The workspace.
            identifier: Our id of the call, or the provider's.
            outcome: What came of it.
            summary: Replaces the call's summary; None keeps it.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace has no such call.
            InvalidRequest: The outcome is none of an answered call, or the summary is too long.
            Conflict: Nobody answered, the call has not ended, its outcome is final, or its campaign was erased.
        """
        verdict = NewCallOutcome(outcome=outcome, summary=summary)
        context = self._context
        return await context.storage.write_in(
            workspace_id,
            lambda tx: verdicts.set_outcome(
                tx, _call_of(tx, workspace_id, identifier), verdict, now=context.now(), actor=actor
            ),
        )

    async def failure(self, call: Call) -> ProviderFailure | None:
        """Return the provider's account of what went wrong with a call; None if nothing did."""
        return await call_failure(self._context, call)


def _call_of(tx: Transaction, workspace_id: str, identifier: str) -> Call:
    # A UUID is case-insensitive; the provider's ids are not.
    call = tx.calls.get(workspace_id, identifier.lower()) if UUID.fullmatch(identifier) else None
    if call is None and text_problem(identifier) is None:
        call = tx.calls.by_provider_id(workspace_id, identifier)
    if call is None:
        raise NotFound("call", identifier)
    return call


def _texts_of(new: NewCall, placeholders: tuple[str, ...] | None) -> Mapping[str, str]:
    unknown = [key for key in new.variables if placeholders is not None and key not in placeholders]
    if unknown:
        expected = ", ".join(placeholders or ()) or "none"
        raise InvalidRequest(
            details=[
                Problem(path=f"variables.{key}", message=f"is unknown to the agent, which expects: {expected}")
                for key in unknown[:20]
            ]
        )
    return {key: _text_of(key, value) for key, value in new.variables.items()}


def _text_of(key: str, value: Any) -> str:
    try:
        return as_text(value)
    except (TypeError, ValueError) as error:
        raise InvalidRequest.at(f"variables.{key}", f"cannot be written as JSON: {error}") from None
