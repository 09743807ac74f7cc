"""What has happened in a workspace: replies, opt-outs, requests that nobody knows the outcome of, and a call."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import attrs

from outreach import Call, CallStatus, Dispatch, MessageStatus, NewAgent, Outreach
from outreach.models import DispatchState
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import make_call, make_dispatch, make_message

SENDER: Final = "+12025550100"
ANN, BEN, CLEO, STOPPED, TOLD, LOST = (f"+1415555010{number}" for number in range(2, 8))
UNCLEAR: Final = "please don't stop by tomorrow"
TRANSCRIPT: Final = "agent: Hello, this is Ada of Acme Clinic.\nuser: Call me again on Monday."


@attrs.frozen(kw_only=True)
class Story:
    """What was made.

    Attributes:
        call: A call that was answered, and that nobody has judged.
        unknown: Two requests with an unknown outcome: of a minute ago, and of an hour ago.
    """

    call: Call
    unknown: tuple[Dispatch, Dispatch]


async def tell(engine: Outreach, workspace_id: str, *, asked_ago: timedelta = timedelta(hours=1)) -> Story:
    """Let things happen in a workspace.

    Args:
        engine: The engine.
        workspace_id: The workspace, which has the number `SENDER`.
        asked_ago: How long ago the older of the unknown requests was made.
    """
    for phone, body in (
        (ANN, "Can I come at 4 instead?"),
        (BEN, "Thank you!"),
        (CLEO, UNCLEAR),
        (STOPPED, "STOP"),
        (ANN, "Or at 5?"),
    ):
        await engine.messages.receive(workspace_id, from_number=phone, to=SENDER, body=body)
    await engine.unsubscribes.add(workspace_id, TOLD, evidence="Told us by phone on 3 May")
    agent = await engine.agents.create(workspace_id, NewAgent(name="Ada"))
    now = engine.now()
    call = make_call(
        workspace_id=workspace_id,
        agent_id=agent.id,
        to=ANN,
        status=CallStatus.COMPLETED,
        outcome="negative",
        answered_by="human",
        summary="Asks to be called again.",
        created_at=now - timedelta(minutes=5),
        dialed_at=now - timedelta(minutes=5),
        answered_at=now - timedelta(minutes=5),
        ended_at=now - timedelta(minutes=3),
    )
    made = [now - timedelta(seconds=5), now - asked_ago]
    texts = [
        make_message(workspace_id=workspace_id, to=LOST, status=MessageStatus.UNKNOWN, created_at=at, attempts=1)
        for at in made
    ]
    unknown = [
        make_dispatch(
            workspace_id=workspace_id,
            message_id=text.id,
            to=LOST,
            body=text.body,
            state=DispatchState.UNKNOWN,
            reason="timeout",
            error_message="Read timed out.",
            created_at=text.created_at,
            slot_at=text.created_at,
            valid_until=text.created_at + timedelta(seconds=5),
        )
        for text in texts
    ]

    def write(tx: Transaction) -> None:
        tx.calls.insert(call)
        tx.calls.put_transcript(call, TRANSCRIPT)
        for text, request in zip(texts, unknown, strict=True):
            tx.messages.insert(text)
            tx.dispatches.insert(request)

    await engine._storage.write(write)
    return Story(call=call, unknown=(unknown[0], unknown[1]))
