from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import attrs
import pytest
from rich.console import Console

from outreach import (
    Campaign,
    CampaignStatus,
    DispatchState,
    MessageStatus,
    NewRecipient,
    NewSmsCampaign,
    Outreach,
    RecipientStatus,
)
from outreach.models import CampaignBlocker, Counters, DispatchCount, RecipientCount
from outreach_server.cli.campaign_picture import Snapshot, SnapshotReader, message_counts
from outreach_server.cli.progress import Lines, Silent, Terminal, render, view_for

NOW = datetime(2026, 11, 20, tzinfo=UTC)


def snapshot(
    status: CampaignStatus = CampaignStatus.ACTIVE, *, still_open: int = 3, eta_seconds: float | None = None
) -> Snapshot:
    """Return a picture of a campaign of ten."""
    campaign = Campaign(
        id="c",
        workspace_id="w",
        channel="sms",
        name="Autumn [sale]",
        status=status,
        pause_reason="error_budget" if status is CampaignStatus.PAUSED else None,
        counters=Counters(total=10, open=still_open),
        created_at=NOW,
        updated_at=NOW,
    )
    groups = (
        RecipientCount(status=RecipientStatus.COMPLETED, reason=None, count=6),
        RecipientCount(status=RecipientStatus.FAILED, reason="some_new_reason", count=1),
        RecipientCount(status=RecipientStatus.PENDING, reason=None, count=3),
    )
    return Snapshot(campaign=campaign, groups=groups, rate_per_minute=90.0, eta_seconds=eta_seconds)


def drawn(picture: Snapshot) -> str:
    """Return what a terminal shows."""
    out = Console(file=io.StringIO(), width=120, force_terminal=True, color_system=None, markup=False)
    with out.capture() as capture:
        out.print(render(picture))
    return capture.get()


def test_a_campaign_that_runs_shows_how_far_it_is_and_when_it_ends() -> None:
    """Counts, rate and the time that is left; a reason nobody has words for is shown as it is."""
    text = drawn(snapshot(eta_seconds=3725.0))
    for words in ("Autumn [sale]", "active", "7/10", "90/min", "about 1 h 2 min left", "failed: some_new_reason"):
        assert words in text
    assert "about 1 min 5 s left" in drawn(snapshot(eta_seconds=65.0))
    assert "about 9 s left" in drawn(snapshot(eta_seconds=9.0))
    assert "left" not in drawn(snapshot())


def test_a_campaign_that_is_paused_says_why() -> None:
    """The reason is what an operator needs."""
    assert "paused (error_budget)" in drawn(snapshot(CampaignStatus.PAUSED))


def test_a_campaign_that_is_held_says_by_what() -> None:
    """docs/states.md#workspaces: the reason is shown, on a terminal and line by line."""
    held = attrs.evolve(
        snapshot(), holds=[CampaignBlocker(by="workspace_suspended", until=NOW, why="It may not work.")]
    )
    assert "active (workspace_suspended)" in drawn(held)
    printed: list[str] = []
    view = Lines(printed.append)
    for picture in (snapshot(), held):
        view.update(picture)
    hint = "It may not work. Until 2026-11-20T00:00:00.000000Z."
    assert [line.partition("  ")[0] for line in printed] == ["active", "active (workspace_suspended)", hint]
    assert hint in drawn(held)


WAITS = {
    CampaignStatus.DRAFT: "finish it with outreach-server campaigns update c",
    CampaignStatus.READY: "waits to be started: outreach-server campaigns start c",
    CampaignStatus.SCHEDULED: "starts it at 2026-11-21T00:00:00",
    CampaignStatus.PAUSED: "waits to be resumed: outreach-server campaigns resume c",
}


@pytest.mark.parametrize("status", CampaignStatus)
def test_a_campaign_that_does_not_run_says_what_it_waits_for(status: CampaignStatus) -> None:
    """Nobody sits before a picture that does not move without knowing why."""
    picture = snapshot(status)
    tomorrow = NOW + timedelta(days=1)
    picture = attrs.evolve(picture, campaign=attrs.evolve(picture.campaign, scheduled_start_at=tomorrow))
    printed: list[str] = []
    Lines(printed.append).update(picture)
    words = WAITS.get(status)
    if words is None:
        assert len(printed) == 1
        assert "outreach-server" not in drawn(picture)
    else:
        assert words in printed[-1]
        assert words in drawn(picture)


def test_what_became_of_calls_is_told_in_words_of_calls() -> None:
    """A call is not accepted by a carrier."""
    messages = snapshot()
    calls = attrs.evolve(messages, campaign=attrs.evolve(messages.campaign, channel="call"))
    assert "sent, not yet confirmed" in drawn(messages)
    assert "carrier" not in drawn(calls)
    assert "the call took place" in drawn(calls)
    assert "not attempted yet" in drawn(calls)


def test_a_campaign_that_has_ended_shows_no_rate() -> None:
    """There is nothing left to wait for."""
    text = drawn(snapshot(CampaignStatus.COMPLETED, still_open=0))
    assert "10/10" in text
    assert "/min" not in text


def test_lines_are_printed_only_when_something_changed() -> None:
    """A log is not filled with the same line."""
    printed: list[str] = []
    view = Lines(printed.append)
    for picture in (snapshot(), snapshot(eta_seconds=5.0), snapshot(still_open=2)):
        view.update(picture)
    assert printed == [
        "active  7/10 ended  6 completed, 1 failed: some_new_reason, 3 pending",
        "active  8/10 ended  6 completed, 1 failed: some_new_reason, 3 pending",
    ]


def test_the_view_fits_what_it_is_shown_on() -> None:
    """A terminal gets a picture, a pipe lines, and a JSON document stands alone."""
    terminal = Console(file=io.StringIO(), force_terminal=True)
    pipe = Console(file=io.StringIO())
    assert isinstance(view_for(terminal, silent=False)[0], Terminal)
    assert isinstance(view_for(pipe, silent=False)[0], Lines)
    assert isinstance(view_for(terminal, silent=True)[0], Silent)


def test_a_terminal_keeps_one_picture() -> None:
    """Each picture takes the place of the one before."""
    file = io.StringIO()
    out = Console(file=file, force_terminal=True, width=100, color_system=None)
    view, screen = view_for(out, silent=False)
    with screen:
        view.update(snapshot())
        view.update(snapshot(still_open=2))
    assert "7/10" in file.getvalue()
    assert "8/10" in file.getvalue()
    assert "\x1b[1A" in file.getvalue()


def sent(count: int, state: DispatchState, report: MessageStatus | None = None) -> DispatchCount:
    """Return how many messages came to something."""
    return DispatchCount(
        provider="twilio", state=state, report=report, reason=None, error_code=None, error_message=None, count=count
    )


def test_what_messages_came_to_is_parted() -> None:
    """That a carrier took them is not that they arrived."""
    taken = sent(4, DispatchState.ACCEPTED), sent(1, DispatchState.ACCEPTED, MessageStatus.SENT)
    arrived = sent(2, DispatchState.ACCEPTED, MessageStatus.DELIVERED)
    others = (
        sent(3, DispatchState.ACCEPTED, MessageStatus.FAILED),
        sent(1, DispatchState.REFUSED),
        sent(1, DispatchState.UNKNOWN),
        sent(9, DispatchState.DEFERRED),
    )
    picture = attrs.evolve(snapshot(), sent=[*taken, arrived, *others])
    assert "Messages: 2 delivered, 5 sent, not yet confirmed, 4 failed, 1 outcome unknown" in drawn(picture)
    assert message_counts(picture.campaign, picture.sent) == {
        "accepted": 5, "delivered": 2, "failed": 4, "unknown": 1,
    }  # fmt: skip
    assert "some of it not yet confirmed" in drawn(picture)
    assert "sent, not yet confirmed" in drawn(attrs.evolve(snapshot(), sent=taken))
    assert "sent and confirmed" in drawn(attrs.evolve(snapshot(), sent=[arrived]))
    printed: list[str] = []
    Lines(printed.append).update(picture)
    assert printed[0].endswith("1 outcome unknown")
    assert "Messages" not in drawn(snapshot())
    call = attrs.evolve(picture.campaign, channel="call")
    assert message_counts(call, picture.sent) is None


def test_a_group_that_waits_says_until_when() -> None:
    """When the first of them goes on, beside the sentence."""
    groups = (RecipientCount(status=RecipientStatus.WAITING, reason="contact_hours", count=3),)
    picture = attrs.evolve(snapshot(), groups=groups, waits={("waiting", "contact_hours"): NOW})
    assert "outside of the hours" in drawn(picture)
    assert "2026-11-20T00:00:00" in drawn(picture)
    assert "until" not in drawn(snapshot())


@pytest.mark.anyio
async def test_what_is_costly_is_looked_at_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look that takes long at every message waits twenty times as long; when all is over it is made once more."""
    clock = iter([0.0, 1.0, 5.0, 25.0, 26.0, 27.0, 28.0])
    monkeypatch.setattr("outreach_server.cli.campaign_picture.time", SimpleNamespace(monotonic=lambda: next(clock)))
    async with Outreach.open("memory://") as engine:
        workspace = await engine.workspaces.create("Acme")
        new = NewSmsCampaign(name="C", body="Hi", carrier="twilio", from_number="+14155550100")
        made = await engine.campaigns.create_sms(workspace.id, new, [NewRecipient(phone_number="+14155550101")])
        looks: list[str] = []

        async def groups(workspace_id: str, campaign_id: str) -> Sequence[DispatchCount]:
            looks.append(campaign_id)
            return []

        monkeypatch.setattr(engine.campaigns, "count_dispatches", groups)
        look = SnapshotReader(engine, workspace.id, made.campaign.id)
        await look.now()
        await look.now()
        assert len(looks) == 1
        await look.now()
        assert len(looks) == 2
        await engine.campaigns.cancel(workspace.id, made.campaign.id)
        await look.now()
        assert len(looks) == 3
