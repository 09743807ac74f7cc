"""Single calls."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import anyio

from outreach.errors import ErrorDetail, InvalidRequest, NotFound
from outreach.models.call import Call, NewCall
from outreach.models.states import CallStatus
from outreach.models.work import Unit
from outreach.operations import singles
from outreach.operations.accounts import require_account
from outreach.operations.common import agent_of, require_available, workspace_of
from outreach.operations.requests import Answer
from outreach.policy.phones import is_dialable, reached_at
from outreach.policy.variables import as_text
from outreach.services.context import ServiceContext
from outreach.services.requests import Claim
from outreach.working_set import Transaction

_POLL_SECONDS: Final = 0.02
_WAITING: Final = {CallStatus.QUEUED, CallStatus.DISPATCHING}
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class Calls:
    """Single calls of workspaces (interface, section 4.1)."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    async def create(
        self,
        workspace_id: str,
        new: NewCall,
        *,
        claim: Claim | None = None,
        render: Callable[[Call], Answer] | None = None,
        actor: str = "library",
    ) -> Call:
        """Queue a call and wait a moment for the provider's acceptance.

        The call that is returned has a `provider_call_id` when the acceptance came in time; whatever happened
        else stands in the call record.

        Args:
            workspace_id: Whose call it is.
            new: What is asked for.
            claim: The idempotency key that the request holds, with `render`.
            render: Makes the answer that is stored under the key.
            actor: Who does it.

        Raises:
            NotFound: The workspace has no such agent.
            InvalidRequest: The number breaks the interface's pattern, or a variable is not one of the agent's.
            Conflict: The agent is inactive or may not call out, a live workspace has no account at its provider, the
                number is on the register, or a call of the same agent to the same number is open.
        """
        if not is_dialable(new.to):
            raise InvalidRequest.at("to", "must be 7 to 15 digits with an optional leading +, like +14155550102")
        context = self._context
        call_id = context.ids()
        waits = context.dispatching()

        def operation(tx: Transaction) -> Call:
            now = context.now()
            workspace = workspace_of(tx, workspace_id)
            require_available(workspace)
            agent = agent_of(tx, workspace_id, new.agent_id)
            # What the request says comes before the state of what it names.
            _check_variables(new, agent.placeholders)
            singles.require_callable(agent)
            require_account(tx, workspace, agent.provider)
            call = Call(
                id=call_id,
                workspace_id=workspace_id,
                agent_id=agent.id,
                provider=agent.provider,
                # Read as everywhere else, so that an opt-out stops the person however the number is written; what
                # the numbering plans do not know is dialled as it stands, because the interface's pattern decides.
                to=reached_at(new.to, workspace.default_region) or new.to,
                sender=agent.from_number,
                variables={key: as_text(value) for key, value in new.variables.items()},
                created_at=now,
            )
            singles.create_call(tx, call, now=now)
            if claim is not None and render is not None:
                claim.finish(tx, render(call), context, settled=not waits)
            return call

        call = await context.storage.write(operation)
        context.wake(Unit("call", workspace_id, call.id))
        if not waits:
            return call
        try:
            call = await self._wait_for_acceptance(call)
        finally:
            if claim is not None and render is not None:
                answer = render(call)
                # Also when the client has gone: its repetition shall not wait for an answer that is not coming.
                with anyio.CancelScope(shield=True):
                    await context.storage.write(lambda tx: claim.finish(tx, answer, context))
        return call

    async def get(self, workspace_id: str, identifier: str) -> Call:
        """Return a call by our identifier or by the provider's.

        Raises:
            NotFound: The workspace has no such call.
        """

        def operation(tx: Transaction) -> Call | None:
            # A UUID is one in whatever case; the provider's identifiers are taken letter by letter.
            ours = tx.calls.get(workspace_id, identifier.lower()) if _UUID.fullmatch(identifier) else None
            return ours or tx.calls.by_provider_id(workspace_id, identifier)

        call = await self._context.storage.read(operation)
        if call is None:
            raise NotFound("call", identifier)
        return call

    async def find(self, identifier: str) -> Call:
        """Return a call of whatever workspace: for operators, whose commands name calls alone.

        Raises:
            NotFound: There is no such call.
        """
        call = await self._context.storage.read(lambda tx: tx.calls.find(identifier))
        if call is None:
            raise NotFound("call", identifier)
        return call

    async def _wait_for_acceptance(self, call: Call) -> Call:
        context = self._context
        with anyio.move_on_after(context.config.call_acceptance_seconds):
            while call.status in _WAITING:
                await anyio.sleep(_POLL_SECONDS)
                call = await self.get(call.workspace_id, call.id)
        return call


def _check_variables(new: NewCall, placeholders: tuple[str, ...] | None) -> None:
    if placeholders is None:
        return
    unknown = [key for key in new.variables if key not in placeholders]
    if unknown:
        expected = ", ".join(placeholders) or "none"
        raise InvalidRequest(
            details=[
                ErrorDetail(f"variables.{key}", f"the agent expects no such variable; it expects: {expected}")
                for key in unknown[:20]
            ]
        )
