from __future__ import annotations

import io
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import attrs
import pytest
from rich.cells import cell_len
from rich.console import Console

from outreach import (
    Campaign,
    CampaignStatus,
    DispatchState,
    MessageStatus,
    NewRecipient,
    NewSmsCampaign,
    NewWorkspace,
    Outreach,
    RecipientStatus,
)
from outreach.errors import Problem
from outreach.models import (
    Counters,
    DispatchCount,
    Forecast,
    ForecastAssumptions,
    ForecastHour,
    RecipientCount,
)
from outreach.models.campaign import PauseReason
from outreach.testing.clock import ManualClock
from outreach_server.cli.campaigns.forecast import forecast_lines
from outreach_server.cli.campaigns.panel import Panel
from outreach_server.cli.campaigns.picture import FORECAST_SECONDS, Snapshot, SnapshotReader, message_counts
from outreach_server.cli.progress import LINE_SECONDS, Lines, PaceMeter, Silent, Terminal, view_for

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
        rate_per_minute=120,
        created_at=NOW,
        updated_at=NOW,
        started_at=NOW - timedelta(minutes=90),
    )
    groups = (
        RecipientCount(status=RecipientStatus.COMPLETED, reason=None, count=6),
        RecipientCount(status=RecipientStatus.FAILED, reason="some_new_reason", count=1),
        RecipientCount(status=RecipientStatus.PENDING, reason=None, count=3),
    )
    return Snapshot(campaign=campaign, groups=groups, at=NOW, pace_per_minute=90.0, eta_seconds=eta_seconds)


def drawn(picture: Snapshot, *, width: int = 120) -> str:
    """Return what a terminal shows."""
    out = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None, markup=False)
    with out.capture() as capture:
        out.print(Panel(picture))
    return capture.get()


def test_a_campaign_that_runs_shows_how_far_it_is_and_when_it_ends() -> None:
    """Counts, rate and the time that is left; a reason nobody has words for is shown as it is."""
    text = drawn(snapshot(eta_seconds=3725.0))
    for words in (
        "Autumn [sale]", "active", "7 of 10 ended   70 %", "90 of 120 contacts a minute", "about 1 h 2 min left",
        "failed: some_new_reason", "UTC, 1 h 30 min ago",
    ):  # fmt: skip
        assert words in text
    assert "about 1 min 5 s left" in drawn(snapshot(eta_seconds=65.0))
    assert "about 9 s left" in drawn(snapshot(eta_seconds=9.0))
    assert "left" not in drawn(snapshot())


def test_a_campaign_that_is_held_says_by_what() -> None:
    """docs/states.md#workspaces: the reason is shown, on a terminal and line by line."""
    held = attrs.evolve(
        snapshot(),
        blockers=[Problem(code="workspace_suspended", until=NOW + timedelta(hours=12), message="It may not work.")],
    )
    assert "active (workspace_suspended)" in drawn(held)
    printed: list[str] = []
    view = Lines(printed.append)
    for picture in (snapshot(), held):
        view.update(picture)
    hint = "It may not work. It goes on at 2026-11-20 12:00:00 UTC, in 12 h 0 min."
    assert [line.partition("  ")[0] for line in printed] == ["active", "active (workspace_suspended)", hint]
    assert hint in drawn(held)


WAITS = {
    CampaignStatus.DRAFT: "finish it with outreach-server campaigns update c",
    CampaignStatus.READY: "waits to be started: outreach-server campaigns start c",
    CampaignStatus.SCHEDULED: "starts it at 2026-11-21 00:00:00 UTC, in 1 d 0 h",
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
        assert words in " ".join(drawn(picture).split())


def test_what_became_of_calls_is_reported_in_words_of_calls() -> None:
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
    assert "10 of 10 ended  100 %" in text
    assert "a minute" not in text
    assert "took 1 h 30 min" in text
    assert "left" not in text


def test_lines_are_printed_only_when_something_changed() -> None:
    """A log is not filled: numbers are told every few seconds, a new state and the end at once."""
    printed: list[str] = []
    view = Lines(printed.append)
    later = NOW + timedelta(seconds=LINE_SECONDS)
    for picture in (
        snapshot(),
        snapshot(eta_seconds=5.0),
        snapshot(still_open=2),
        attrs.evolve(snapshot(still_open=1), at=later),
        attrs.evolve(snapshot(CampaignStatus.COMPLETED, still_open=0), at=later),
    ):
        view.update(picture)
    groups = "6 completed, 1 failed: some_new_reason, 3 pending"
    assert printed == [
        f"active  7/10 ended  90 of 120 contacts a minute  {groups}",
        f"active  9/10 ended  90 of 120 contacts a minute  {groups}",
        f"completed  10/10 ended  {groups}",
    ]


def forecast(**changes: Any) -> Forecast:
    """Return a forecast of the campaign of ten, three of whom are left."""
    found = Forecast(
        campaign_id="c",
        channel="sms",
        at=NOW,
        starts_at=NOW,
        ends_at=NOW + timedelta(minutes=2),
        contacts=3,
        requests=3,
        unreached=0,
        held=0,
        expires=False,
        hours=(ForecastHour(at=NOW, requests=3, bound_by="pace"),),
        phases=(),
        shared_with=0,
        assumptions=ForecastAssumptions(),
        measured=(),
        sampled=False,
    )
    return attrs.evolve(found, **changes)


def test_a_picture_says_when_it_will_be_done_and_what_limits_it() -> None:
    """At 80 columns too; what has ended has no forecast."""
    words = "3 messages to go, done at 2026-11-20 00:02 UTC; limited mostly by its rate."
    text = drawn(attrs.evolve(snapshot(), forecast=forecast()), width=80)
    assert f"Forecast {words}" in " ".join(text.split())
    assert all(cell_len(line) <= 80 for line in text.splitlines())
    assert "Forecast" not in drawn(snapshot())
    assert "Forecast" not in drawn(attrs.evolve(snapshot(), forecast=forecast(contacts=0, ends_at=NOW)))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "no messages to go; it is done when its last contacts have ended."),
        ({"ends_at": None}, "no messages within 400 days."),
        ({"expires": True}, "no messages before it expires."),
    ],
)
def test_a_campaign_that_only_awaits_outcomes_has_nothing_to_go(changes: dict[str, Any], words: str) -> None:
    """Its messages were sent; it is not one whose hours never open."""
    awaits = forecast(starts_at=None, requests=0, hours=(), **changes)
    assert forecast_lines(awaits, "UTC") == [f"Forecast: {words}"]


@pytest.mark.parametrize(("expires", "ends"), [(False, "is done"), (True, "expires")])
def test_a_campaign_that_leaves_out_every_contact_says_when_it_ends(expires: bool, ends: str) -> None:
    """Its contacts are skipped when it opens, and not before."""
    told = forecast(contacts=0, starts_at=None, requests=0, hours=(), expires=expires)
    [line] = forecast_lines(told, "UTC")
    assert line == (
        f"Forecast: no messages to go, because every contact is left out; it {ends} at 2026-11-20 00:02 UTC."
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"held": 1, "contacts": 0, "ends_at": None},
            "Forecast: 1 contact waits for a decision (`unsubscribes held`), and nobody else is left; "
            "it ends after that.",
        ),
        (
            {"held": 2, "contacts": 0, "expires": True},
            "Forecast: 2 contacts wait for a decision (`unsubscribes held`), and nobody else is left; "
            "it expires at 2026-11-20 00:02 UTC.",
        ),
        (
            {"held": 2},
            "Forecast: 3 messages to go, done at 2026-11-20 00:02 UTC; limited mostly by its rate.|"
            "2 contacts wait for a decision (`unsubscribes held`), and the campaign ends after it.",
        ),
    ],
)
def test_contacts_who_wait_for_a_decision_are_named(changes: dict[str, Any], words: str) -> None:
    """With the command that shows them."""
    assert "|".join(forecast_lines(forecast(**changes), "UTC")) == words


def test_lines_tell_the_forecast_when_the_state_changes() -> None:
    """Not with each number."""
    printed: list[str] = []
    view = Lines(printed.append)
    later = NOW + timedelta(seconds=LINE_SECONDS)
    for picture in (
        snapshot(),
        attrs.evolve(snapshot(still_open=2), at=later),
        attrs.evolve(snapshot(CampaignStatus.PAUSED, still_open=2), at=later),
    ):
        view.update(attrs.evolve(picture, forecast=forecast()))
    assert [line.partition(":")[0].partition("  ")[0] for line in printed] == [
        "active",
        "Forecast",
        "active",
        "paused (error_budget)",
        "It is paused",
        "It waits to be resumed",
        "Forecast",
    ]


@pytest.mark.parametrize(("reason", "place"), [("restored", "REPLACED_DATABASE"), ("moved", "provider")])
def test_a_campaign_of_a_copied_database_is_resumed_without_contacting_anybody_twice(
    reason: PauseReason, place: str
) -> None:
    """Without the option, contacts of the time since the backup get everything twice."""
    picture = snapshot(CampaignStatus.PAUSED)
    picture = attrs.evolve(picture, campaign=attrs.evolve(picture.campaign, pause_reason=reason))
    printed: list[str] = []
    Lines(printed.append).update(picture)
    assert f"outreach-server campaigns resume c --skip-contacted-in {place}," in printed[-1]


def test_the_pace_is_measured_over_the_last_half_minute() -> None:
    """By the contacts that were begun; the rest takes that pace, or that of the ends if all are begun."""
    meter = PaceMeter()

    def at(seconds: float, pending: int, still_open: int) -> Snapshot:
        picture = attrs.evolve(snapshot(), pace_per_minute=None)
        counters = Counters(total=100, pending=pending, open=still_open)
        return meter.measure(attrs.evolve(picture, campaign=attrs.evolve(picture.campaign, counters=counters)), seconds)

    first = at(0, 100, 100)
    assert (first.pace_per_minute, first.eta_seconds) == (None, None)
    assert "at most 120 contacts a minute" in drawn(first)
    moving = at(10, 90, 100)
    assert (moving.pace_per_minute, moving.eta_seconds) == (60.0, 90.0)
    assert moving.paces == (60.0,)
    held = Problem(code="provider_throttle", until=NOW, message="It is throttled.")
    assert "about 1 min 30 s left" in drawn(moving)
    assert "left at" not in drawn(attrs.evolve(moving, blockers=[held]))
    # What was half a minute ago counts no more.
    assert at(45, 90, 100).pace_per_minute == 0.0
    assert at(55, 0, 50).eta_seconds == 45.0


def test_a_command_in_the_picture_stands_on_one_line() -> None:
    """So that it can be copied from a terminal of 80 columns."""
    picture = snapshot(CampaignStatus.PAUSED)
    identifier = "01a204ee-e60d-7000-a328-8f112551ccc9"
    text = drawn(attrs.evolve(picture, campaign=attrs.evolve(picture.campaign, id=identifier)), width=80)
    assert f"outreach-server campaigns resume {identifier}" in [line.strip() for line in text.splitlines()]


def test_calls_show_how_many_are_under_way_of_how_many_may_be() -> None:
    """That is their pace; contacts a minute beside it."""
    picture = snapshot()
    campaign = attrs.evolve(picture.campaign, channel="call", batch_concurrency=8)
    groups = [RecipientCount(status=RecipientStatus.IN_PROGRESS, reason="calling", count=5)]
    text = drawn(attrs.evolve(picture, campaign=campaign, groups=groups))
    assert "5 of 8 calls at a time, 90 contacts a minute" in text
    assert "ringing, or talking" in text


@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_picture_is_as_wide_as_its_terminal(width: int) -> None:
    """What matters is whole at 80 columns; a wide one has a bar for each result and whole times."""
    groups = (
        RecipientCount(status=RecipientStatus.COMPLETED, reason=None, count=1_000_000),
        RecipientCount(status=RecipientStatus.WAITING, reason="contact_hours", count=123_456),
    )
    campaign = attrs.evolve(
        snapshot().campaign, name="Long name " * 30, counters=Counters(total=1_123_456, open=123_456)
    )
    tomorrow = NOW + timedelta(hours=30)
    picture = attrs.evolve(
        snapshot(), campaign=campaign, groups=groups, waits={("waiting", "contact_hours"): tomorrow}, paces=[0.0, 60.0]
    )
    text = drawn(picture, width=width)
    assert all(cell_len(line) <= width for line in text.splitlines())
    if width >= 80:
        assert "1,000,000 of 1,123,456 ended   89 %" in text
        assert "in 1 d 6 h" in text
        assert "▁█" in text
    assert ("2026-11-21 06:00:00 UTC, in 1 d 6 h" in text) is (width >= 120)


def test_a_picture_without_colours_or_letters_beyond_ascii_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """NO_COLOR is heeded, and a terminal that knows only ASCII gets no blocks."""
    monkeypatch.setenv("NO_COLOR", "1")
    plain = Console(file=io.StringIO(), width=100, force_terminal=True)
    with plain.capture() as capture:
        plain.print(Panel(attrs.evolve(snapshot(), paces=[60.0])))
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", capture.get())
    assert "7 of 10 ended" in capture.get()
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    ascii_only = Console(file=stream, width=80, force_terminal=True, color_system=None)
    ascii_only.print(Panel(attrs.evolve(snapshot(), paces=[60.0])))
    stream.flush()


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
    assert "7 of 10" in file.getvalue()
    assert "8 of 10" in file.getvalue()
    assert "\x1b[1A" in file.getvalue()


def sent(count: int, state: DispatchState, report: MessageStatus | None = None) -> DispatchCount:
    """Return how many messages came to something."""
    return DispatchCount(
        provider="twilio", state=state, report=report, reason=None, error_code=None, error_message=None, count=count
    )


def test_what_messages_came_to_is_parted() -> None:
    """That a carrier took them is not that they arrived; what nobody looks up any more is not unknown for now."""
    taken = sent(4, DispatchState.ACCEPTED), sent(1, DispatchState.ACCEPTED, MessageStatus.SENT)
    arrived = sent(2, DispatchState.ACCEPTED, MessageStatus.DELIVERED)
    others = (
        sent(3, DispatchState.ACCEPTED, MessageStatus.FAILED),
        sent(1, DispatchState.REFUSED),
        sent(1, DispatchState.UNKNOWN),
        sent(2, DispatchState.UNCONFIRMED),
        sent(1, DispatchState.GIVEN_UP),
        sent(9, DispatchState.DEFERRED),
    )
    picture = attrs.evolve(snapshot(), sent=[*taken, arrived, *others])
    assert "Messages  2 delivered, 5 sent, not yet confirmed, 4 failed, 1 outcome unknown, 3 never confirmed" in drawn(
        picture
    )
    assert message_counts(picture.campaign, picture.sent) == {
        "accepted": 5, "delivered": 2, "failed": 4, "unknown": 1, "unconfirmed": 3,
    }  # fmt: skip
    assert "some of it not yet confirmed" in drawn(picture)
    assert "sent, not yet confirmed" in drawn(attrs.evolve(snapshot(), sent=taken))
    assert "sent and confirmed" in drawn(attrs.evolve(snapshot(), sent=[arrived]))
    printed: list[str] = []
    Lines(printed.append).update(picture)
    assert printed[0].endswith("1 outcome unknown, 3 never confirmed")
    assert "Messages" not in drawn(snapshot())
    call = attrs.evolve(picture.campaign, channel="call")
    assert message_counts(call, picture.sent) is None


def test_a_group_that_waits_says_until_when() -> None:
    """When the first of them goes on, beside the sentence."""
    groups = (RecipientCount(status=RecipientStatus.WAITING, reason="contact_hours", count=3),)
    picture = attrs.evolve(snapshot(), groups=groups, waits={("waiting", "contact_hours"): NOW})
    assert "outside of the contact hours" in drawn(picture)
    assert "2026-11-20 00:00:00 UTC, now" in " ".join(drawn(picture).split())
    assert "until" not in drawn(snapshot())


@pytest.mark.anyio
async def test_what_is_costly_is_looked_at_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look that takes long at every message waits twenty times as long; when all is over it is made once more."""
    clock = iter([0.0, 1.0, 5.0, 25.0, 26.0, 27.0, 28.0])
    monkeypatch.setattr("outreach_server.cli.campaigns.picture.time", SimpleNamespace(monotonic=lambda: next(clock)))
    async with Outreach.open("memory://") as engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="Acme"))
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


@pytest.mark.anyio
async def test_a_forecast_is_made_anew_now_and_then_and_when_the_state_changes() -> None:
    """Not with each picture, and not at all where nobody looks; a slow one less often."""
    clock = ManualClock()
    async with Outreach.open("memory://") as engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="Acme"))
        new = NewSmsCampaign(name="C", body="Hi", carrier="twilio", from_number="+14155550100")
        made = await engine.campaigns.create_sms(workspace.id, new, [NewRecipient(phone_number="+14155550101")])
        looks: list[float] = []
        takes = 0.0
        real = engine.campaigns.forecast

        async def looked(workspace_id: str, campaign_id: str) -> Forecast:
            looks.append(clock.monotonic())
            clock.advance(takes)
            return await real(workspace_id, campaign_id)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(engine.campaigns, "forecast", looked)
            assert (await SnapshotReader(engine, workspace.id, made.campaign.id, clock).now()).forecast is None
            look = SnapshotReader(engine, workspace.id, made.campaign.id, clock, forecasts=True)
            for _ in range(3):
                found = (await look.now()).forecast
                assert found is not None
                assert found.requests == 1
                clock.advance(FORECAST_SECONDS / 3)
            assert len(looks) == 1
            takes = 60.0
            clock.advance(FORECAST_SECONDS)
            await look.now()
            clock.advance(10 * takes)
            await look.now()
            assert len(looks) == 2
            await engine.campaigns.start(workspace.id, made.campaign.id)
            await look.now()
            assert len(looks) == 3
            await engine.campaigns.cancel(workspace.id, made.campaign.id)
            assert (await look.now()).forecast is None
            assert len(looks) == 3
