"""The results of a campaign: its report, to read, print and compare, and its contacts as a file."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any, Final, cast

import attrs
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.responses import Response

from outreach.http import EXPORT_CONTENT_TYPES
from outreach.models import CampaignReport
from outreach.server_support import JoinedReads
from outreach_server.console import words
from outreach_server.console.access import Right
from outreach_server.console.clocks import Clocks
from outreach_server.console.context import Visit, not_found
from outreach_server.console.drawing.charts import Piece, progress
from outreach_server.console.pages.campaign_views import moment_of, state_of
from outreach_server.console.pages.downloads import Guard
from outreach_server.console.pages.new.steps import Choice
from outreach_server.console.pages.views import ShareView
from outreach_server.console.words import Tone
from outreach_server.download import DownloadResponse, made_in_turn
from outreach_server.fair_semaphore import FairSemaphoreTimeout

_MOST_OTHERS: Final = 50
_MOST_CAUSES: Final = 50
_NO_TURN: Final = "Another export of this workspace is being made. Try again in a minute."
_TONES: Final[dict[str, Tone]] = {"completed": "good", "failed": "bad", "unconfirmed": "warn", "skipped": "warn"}


@attrs.frozen(kw_only=True)
class FigureView:
    """A figure, beside that of another campaign.

    Attributes:
        other: The other campaign's; empty without one.
    """

    name: str
    value: str
    about: str
    other: str = ""


@attrs.frozen(kw_only=True)
class SenderView:
    """The messages from one number of a sender pool.

    Attributes:
        failed: Refused by the carrier, or reported as not delivered.
        delivered_share: Of its accepted messages.
    """

    from_number: str
    requests: int
    delivered: int
    delivered_share: str
    failed: int
    opt_outs: int


@attrs.frozen(kw_only=True)
class CauseView:
    """The requests that failed for one cause of a provider."""

    requests: int
    provider: str
    cause: str
    code: str
    advice: str


@attrs.frozen(kw_only=True)
class BucketView:
    """The counts of a stretch of time."""

    since: str
    requests: int
    replies: int
    opt_outs: int
    bar: Markup


async def show(visit: Visit) -> Response:
    """Show the report, beside another campaign's if the address names one."""
    campaign, other_id = visit.subject, visit.request.query_params.get("with", "")
    place, campaigns, campaign_id = visit.place.id, visit.engine.campaigns, campaign.id
    async with JoinedReads() as reads:
        reported = reads.start(campaigns.report(place, campaign_id))
        compared = reads.start(campaigns.report(place, other_id)) if other_id else None
        listed = reads.start(campaigns.list(place, channel=campaign.channel, limit=_MOST_OTHERS))
    made, other = reported.result(), None if compared is None else compared.result()
    clocks = visit.clocks(made.timezone)
    return visit.page(
        "report",
        title=f"Report · {words.visible(campaign.name)}",
        current="campaigns",
        campaign_id=campaign_id,
        name=campaign.name,
        state_view=state_of(campaign, visit.now),
        started=made.started_at is not None,
        as_of=moment_of(made.at, visit.now, clocks),
        erased=made.erased_at is not None,
        times=[
            f"{name} {clocks.moment(at, visit.now)}"
            for name, at in (("Started", made.started_at), ("Ended", made.completed_at))
            if at is not None
        ],
        zone=clocks.name,
        figures=_figures(made, other),
        other="" if other is None else other.name,
        others=[
            Choice(value=one.id, word=one.name, chosen=one.id == other_id)
            for one in listed.result().items
            if one.id != campaign_id
        ],
        results=[
            _share(one.status.value, one.meaning or (one.reason or "").replace("_", " "), one.contacts, made.contacts)
            for one in made.results
        ],
        requests=_requests(made),
        senders=_senders(made),
        causes=_causes(made),
        causes_left=sum(one.requests for one in made.failures[_MOST_CAUSES:]),
        buckets=_buckets(made, visit, clocks),
        may_export=visit.may(Right.EXPORT) and not made.erased_at,
        may_follow_up=visit.may(Right.DRAFT) and made.started_at is not None and not made.erased_at,
    )


async def act_export(visit: Visit) -> Response:
    """Check the password, and go on to the file."""
    return await _guard(visit).answer(visit)


async def export(visit: Visit) -> Response:
    """Send the contacts as a file, through the limits of the HTTP interface, once the password was given lately."""
    if (proof_page := await _guard(visit).stops(visit)) is not None:
        return proof_page
    kind: Any = _format(visit)
    campaign = visit.subject
    # It is a generator, which the service does not promise; closing it closes its file.
    parts = cast(
        "AsyncGenerator[bytes]",
        visit.engine.campaigns.export(visit.place.id, campaign.id, kind, actor=visit.actor),
    )
    return DownloadResponse(
        _in_turn(made_in_turn(parts, visit.console.lists.workbooks, visit.place.id)) if kind == "xlsx" else parts,
        name=f"campaign-{campaign.id}.{kind}",
        content_type=EXPORT_CONTENT_TYPES[kind],
        only_headers=visit.request.method == "HEAD",
    )


def _format(visit: Visit) -> str:
    kind = visit.request.query_params.get("format", "csv")
    if kind not in EXPORT_CONTENT_TYPES:
        raise not_found()
    return kind


def _guard(visit: Visit) -> Guard:
    campaign = visit.subject.id
    return Guard(
        url=visit.url("export", {"format": _format(visit)}, campaign=campaign),
        action="export",
        why="The file has the names, numbers and messages of all contacts of this campaign.",
        back="Report",
        back_url=visit.url("report", campaign=campaign),
        current="campaigns",
    )


async def _in_turn(parts: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    try:
        async for part in parts:
            yield part
    except FairSemaphoreTimeout:
        raise HTTPException(429, _NO_TURN) from None
    finally:
        await parts.aclose()


def _figures(made: CampaignReport, other: CampaignReport | None) -> Sequence[FigureView]:
    theirs = {} if other is None else {name: value for name, value, _ in _named(other)}
    return [
        FigureView(name=name, value=value, about=about, other=theirs.get(name, "none" if other else ""))
        for name, value, about in _named(made)
    ]


def _named(made: CampaignReport) -> Sequence[tuple[str, str, str]]:
    """Return the figures that are asked for first: name, value, and what it is of."""
    messages, calls, cost = made.messages, made.calls, made.cost
    of_all = words.share(made.contacted, made.contacts)
    found = [
        ("Contacts", words.number(made.contacts), ""),
        ("Contacted", words.number(made.contacted), f"{of_all} of all" if of_all else ""),
    ]
    if messages is not None:
        found.append(("Delivered", words.number(messages.delivered), f"of {messages.accepted:,} accepted messages"))
    if calls is not None:
        found.append(("Answered", words.number(calls.answered), f"of {words.plural(calls.calls, 'call')}"))
        found.append(("Positive", words.number(made.successful), "contacts"))
    found += [
        ("Failed", words.number(made.failed), "contacts"),
        ("Replies", words.number(made.replies), f"from {words.plural(made.repliers, 'contact')}"),
        ("Opt-outs", words.number(made.opt_outs), "contacts"),
    ]
    if messages is not None:
        found.append(("Segments", words.number(messages.segments), "of accepted messages"))
    if calls is not None:
        found.append(("Minutes", f"{calls.minutes:,.1f}", "between answer and end"))
    left_out = "" if cost is None or not cost.unpriced else f", without {cost.unpriced:,} that have no price"
    found.append(
        ("Cost", "unknown", "the workspace has no prices")
        if cost is None
        else ("Cost", cost.amount_text, f"{cost.currency}{left_out}")
    )
    if made.still_open:
        found.append(("Still open", words.number(made.still_open), "contacts"))
    return found


def _share(state: str, why: str, value: int, total: int, tone: Tone | None = None) -> ShareView:
    name = words.CONTACT_STATES.get(state, (state, "", ""))[0]
    share = words.share(value, total)
    piece = Piece(value=value, tone=tone or _TONES.get(state, "plain"), words=name)
    label = f"{name}: {value:,}, {share}"
    return ShareView(name=name, why=why, value=value, share=share, bar=progress([piece], total=total, label=label))


def _requests(made: CampaignReport) -> Sequence[ShareView]:
    """Return the messages or calls by what became of them, retries included."""
    messages, calls = made.messages, made.calls
    found: Sequence[tuple[str, int, Tone]]
    if messages is not None:
        total = messages.requests
        found = (
            ("Delivered", messages.delivered, "good"),
            ("Accepted, no final report", messages.unreported, "plain"),
            ("Accepted, not delivered", messages.undelivered, "bad"),
            ("Refused", messages.refused, "bad"),
            ("Not known whether accepted", messages.uncertain, "warn"),
            ("Not sent: deferred or withdrawn", messages.not_sent, "plain"),
            ("On their way", messages.in_flight, "plain"),
        )
    else:
        assert calls is not None  # noqa: S101 - a report has one of both
        total = calls.calls
        found = (
            *(
                (words.OUTCOMES.get(name, (name, "", "plain"))[0], count, "plain")
                for name, count in calls.outcomes.items()
            ),
            ("Not ended", calls.open, "plain"),
        )
    return [_share(name, "", value, total, tone) for name, value, tone in found if value]


def _senders(made: CampaignReport) -> Sequence[SenderView]:
    return [
        SenderView(
            from_number=one.from_number,
            requests=one.requests,
            delivered=one.delivered,
            delivered_share=words.share(one.delivered, one.accepted),
            failed=one.undelivered + one.refused,
            opt_outs=one.opt_outs,
        )
        for one in made.senders
    ]


def _causes(made: CampaignReport) -> Sequence[CauseView]:
    return [
        CauseView(
            requests=one.requests,
            provider=one.failure.provider,
            cause=one.failure.meaning or one.failure.error_message or (one.failure.reason or "").replace("_", " "),
            code=one.failure.error_code or "",
            advice=one.failure.advice or "",
        )
        for one in made.failures[:_MOST_CAUSES]
    ]


def _buckets(made: CampaignReport, visit: Visit, clocks: Clocks) -> Sequence[BucketView]:
    highest = max((one.requests for one in made.over_time), default=0)
    return [
        BucketView(
            since=clocks.moment(one.since, visit.now),
            requests=one.requests,
            replies=one.replies,
            opt_outs=one.opt_outs,
            bar=progress(
                [Piece(value=one.requests, tone="accent", words="requests")],
                total=highest,
                label=words.plural(one.requests, "request"),
            ),
        )
        for one in made.over_time
    ]
