"""/manage/sms, /manage/calls and /manage/inbound: single messages, calls, and what people wrote back."""

from __future__ import annotations

from typing import get_args

from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response

from outreach import CallStatus
from outreach.http import (
    read_call_verdict,
    read_dispatch_decision,
    to_json,
    write_call_details,
    write_inbound_message,
    write_managed_call,
    write_managed_sms,
    write_sms,
)
from outreach.models import CallOutcomeFilter
from outreach_server.auth import authenticate_request
from outreach_server.bodies.query import flag, identifier, one_of, words
from outreach_server.context import server_of
from outreach_server.endpoints.manage.common import ACTOR, admit, page_response, path_id, read_body, read_page
from outreach_server.errors import json_response


class ManagedSms(HTTPEndpoint):
    """List single messages."""

    async def get(self, request: Request) -> Response:
        """Return a page of single messages, newest first."""
        workspace = await authenticate_request(request, "listSms")
        query = read_page(request, external_id=words, metadata=words, after=words)
        found = await server_of(request).engine.messages.list(workspace.id, **query)
        return page_response(found, write_managed_sms)


class OneSms(HTTPEndpoint):
    """Show a single message."""

    async def get(self, request: Request) -> Response:
        """Return a message of `POST /sms`, or one of the engine's answers to a keyword."""
        workspace = await admit(request, "getSms")
        messages = server_of(request).engine.messages
        message = await messages.get(workspace.id, path_id(request, "message"))
        return json_response(write_sms(message, await messages.failure(message)))


class ManagedCalls(HTTPEndpoint):
    """List calls."""

    async def get(self, request: Request) -> Response:
        """Return a page of calls, newest first, of one campaign or of all."""
        workspace = await authenticate_request(request, "listCalls")
        query = read_page(
            request,
            campaign_id=identifier,
            agent_id=identifier,
            status=one_of(*CallStatus),
            outcome=one_of(*get_args(CallOutcomeFilter)),
            external_id=words,
            metadata=words,
            after=words,
        )
        found = await server_of(request).engine.calls.list(workspace.id, **query)
        return page_response(found, write_managed_call)


class OneManagedCall(HTTPEndpoint):
    """Show a call."""

    async def get(self, request: Request) -> Response:
        """Return a call with its cost, and what was said in it."""
        workspace = await admit(request, "getCallDetails")
        calls = server_of(request).engine.calls
        call = await calls.get(workspace.id, path_id(request, "call"))
        return json_response(write_call_details(call, await calls.transcript(workspace.id, call.id)))


class CallOutcome(HTTPEndpoint):
    """Judge a call."""

    async def put(self, request: Request) -> Response:
        """Give an answered call that has ended its outcome."""
        workspace = await admit(request, "setCallOutcome")
        verdict, _ = await read_body(request, read_call_verdict)
        call = await server_of(request).engine.calls.set_outcome(
            workspace.id, path_id(request, "call"), verdict.outcome, summary=verdict.summary, actor=ACTOR
        )
        return json_response(write_managed_call(call))


class DispatchDecision(HTTPEndpoint):
    """Decide about requests with an unknown outcome."""

    async def put(self, request: Request) -> Response:
        """Make a decision about many requests, or only count what it does."""
        workspace = await admit(request, "decideDispatches")
        wanted, _ = await read_body(request, read_dispatch_decision)
        dispatches = server_of(request).engine.dispatches
        if wanted.decision == "undo":
            result = await dispatches.undo_many(workspace.id, wanted.which, dry_run=wanted.dry_run, actor=ACTOR)
        else:
            result = await dispatches.resolve_many(
                workspace.id, wanted.decision, wanted.which, dry_run=wanted.dry_run, actor=ACTOR
            )
        return json_response({"dry_run": wanted.dry_run, **to_json(result)})


class LookUpDispatch(HTTPEndpoint):
    """Look a request up at its provider."""

    async def post(self, request: Request) -> Response:
        """Ask the provider now what became of a request whose outcome is unknown."""
        workspace = await admit(request, "lookUpDispatch")
        found = await server_of(request).engine.dispatches.look_up(
            workspace.id, path_id(request, "dispatch"), actor=ACTOR
        )
        return json_response({"id": found.dispatch.id, "state": found.dispatch.state, "answer": found.answer})


class InboundMessages(HTTPEndpoint):
    """List what people wrote back."""

    async def get(self, request: Request) -> Response:
        """Return a page of inbound messages, newest first."""
        workspace = await authenticate_request(request, "listInbound")
        query = read_page(request, unclear=flag, unanswered=flag, after=words)
        found = await server_of(request).engine.messages.list_inbound(workspace.id, **query)
        return page_response(found, write_inbound_message)


class OneInboundMessage(HTTPEndpoint):
    """Show what somebody wrote back."""

    async def get(self, request: Request) -> Response:
        """Return an inbound message."""
        workspace = await admit(request, "getInbound")
        messages = server_of(request).engine.messages
        return json_response(
            write_inbound_message(await messages.get_inbound(workspace.id, path_id(request, "inbound message")))
        )
