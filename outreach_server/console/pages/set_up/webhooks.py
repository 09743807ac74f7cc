"""Webhooks: endpoints that events are delivered to, how far each is behind, and what became of deliveries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Final

import attrs

from outreach import Conflict, InvalidRequest
from outreach.models import (
    CreatedWebhook,
    NewWebhook,
    Webhook,
    WebhookAttempt,
    WebhookProgress,
    WebhookReplay,
    WebhookRotation,
    WebhookUpdate,
)
from outreach.server_support import DISABLED_REASONS, TYPES_FOR_ONE_ENDPOINT, WEBHOOK_TYPES, failure_words, is_success
from outreach_server.console import words
from outreach_server.console.access import Right
from outreach_server.console.context import Visit
from outreach_server.console.pages.moments import moment_in
from outreach_server.console.pages.set_up.inputs import Input, changed, inputs_of
from outreach_server.console.pages.set_up.nouns import Cell, Listed, On, Result, Sent, SetUpAction, Table, TableRow, at
from outreach_server.console.pages.set_up.resources import ResourceNoun

PAGE_SIZE: Final = 10
"""Endpoints of a page: how far each is behind takes look-ups of its own."""

ATTEMPTS_SHOWN: Final = 15

_ANSWER_SHOWN: Final = 200
"""Characters of an answer."""

_TYPES: Final = [(name, name) for name in WEBHOOK_TYPES if name not in TYPES_FOR_ONE_ENDPOINT]

_PAYLOADS: Final = (
    ("thin", "Thin: ids, states and reasons"),
    ("full", "Full: numbers and texts too"),
)
_FULL: Final = "Full deliveries take personal data out of this server. Choose them only where they are needed."

_ADVICE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "target_refused": "The host must have public addresses only. The operator of the server can allow others by "
        "OUTREACH_WEBHOOK_ALLOW.",
        "certificate": "Replace it; the next delivery tries again.",
        "not_connected": "Check the name in the URL, and whether its server takes connections.",
        "timeout": "The endpoint must answer within 15 seconds, and do its work afterwards.",
        "dropped": "The logs of the endpoint may say why.",
    }
)
"""The advice about each reason why no answer came."""

_GONE: Final = "By 410 the endpoint says that it wants nothing any more. If that is wrong, mend it and enable it here."
_REDIRECT: Final = "Redirects are not followed. Set the URL to which it leads."
_REFUSED: Final = "The endpoint must answer with a status from 200 to 299. Its answers are below."

_ONCE: Final = "Copy the secret now: it is shown only this once."
_REPEATED: Final = (
    "This form was sent before, for webhook {id}. Its secret was shown then, and cannot be shown again. Give it a new "
    "secret if you do not have that one."
)
_NO_START: Final = "Give the number of the first event, or its time."
_NO_MOMENT: Final = "must be a day and a time, such as 2026-11-28T09:30"


class WebhooksNoun(ResourceNoun):
    """Webhooks."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.right = Right.OWN
        self.live = "webhook"
        self.columns = ("URL", "State", "Not delivered yet", "Last answer")
        self.empty = "Programs of yours to which events are posted as they happen. There is none yet."
        create, update, remove = *self.on_list, *self.on_one
        self.on_list = (_of(create, label="Add a webhook", command="webhooks add", proof=True),)
        self.on_one = (
            _button("pause", "Pause", "It is paused, and its place among the events is kept.", "active"),
            _button("enable", "Enable", "It goes on where it was.", "paused", "disabled", primary=True),
            _button("test", "Send a test", "A test is on its way: load this page again to see the answer.", "active"),
            _of(update, proof=True, primary=False),
            SetUpAction(
                name="replay",
                label="Deliver again",
                title="Deliver events again",
                command="webhooks replay",
                operation="replayWebhook",
                fields=_replay_fields,
                do=_replay,
                done="They are delivered again, with the ids that they had.",
                effect="All events from there on, or one alone, are delivered again with the ids that they had: an "
                "endpoint that handles each id once does nothing twice.",
            ),
            SetUpAction(
                name="rotate",
                label="Make a new secret",
                title="Replace the secret",
                command="webhooks rotate",
                operation="rotateWebhook",
                fields=_rotation_fields,
                do=_rotate,
                proof=True,
            ),
            _of(remove, proof=True, effect="What it has not received yet is not delivered."),
        )

    async def list(self, visit: Visit, after: str | None) -> Listed:
        """Return a page of the endpoints."""
        page = await visit.engine.webhooks.list(visit.place.id, after=after, limit=PAGE_SIZE)
        return Listed(items=page.items, next=page.next)

    async def cells(self, visit: Visit, items: Sequence[Any]) -> Sequence[Sequence[Cell]]:
        """Return the state, the lag and the last answer of each."""
        known = await visit.engine.webhooks.progress(visit.place.id, *(one.id for one in items))
        return [
            (_state(visit, one, progress), waiting_words(visit, progress), _last_words(visit, progress))
            for one, progress in zip(items, known, strict=True)
        ]

    async def facts(self, visit: Visit, one: Any) -> Sequence[tuple[str, Cell]]:
        """Return how its deliveries go."""
        [progress] = await visit.engine.webhooks.progress(visit.place.id, one.id)
        cursor = progress.cursor
        return [
            ("Identifier", one.id),
            ("State", _state(visit, one, progress)),
            ("What to do", _advice(one, progress.last)),
            ("Not delivered yet", waiting_words(visit, progress)),
            ("Has come to event", str(cursor.position)),
            ("Failing since", at(visit, cursor.failing_since)),
            ("Failures in a row", words.number(cursor.failures) if cursor.failures else ""),
            ("Next request", at(visit, cursor.probe_at) if one.state == "active" else ""),
            ("Created", at(visit, one.created_at)),
        ]

    async def table(self, visit: Visit, one: Any, after: str | None) -> Table:
        """Return its latest deliveries, each with a button that delivers it again."""
        page = await visit.engine.webhooks.list_attempts(visit.place.id, one.id, after=after, limit=ATTEMPTS_SHOWN)
        return Table(
            title="Deliveries",
            note="Those of 30 days, the latest first. “Send again” delivers an event alone.",
            columns=("Event", "When", "Answer", "Beginning of its text"),
            rows=[_row(visit, attempt) for attempt in page.items],
            next=page.next,
            nothing="Nothing was delivered to it yet.",
            sends={"action": "replay", "only": "yes"},
            label="Send again",
        )

    async def _new_fields(self, on: On) -> Sequence[Input]:
        return _inputs(NewWebhook, None)

    async def _change_fields(self, on: On) -> Sequence[Input]:
        return _inputs(WebhookUpdate, on.one)

    async def _create(self, sent: Sent) -> Result:
        new = NewWebhook(**sent.values)
        with _of_url():
            made = await sent.engine.webhooks.create(sent.place, new, idempotency_key=sent.key, actor=sent.actor)
        return _with_secret(made, "It gets the events from now on.")

    async def _update(self, sent: Sent) -> Result:
        values = {**sent.values, "types": _types_of(sent)}
        if changes := changed(values, sent.one):
            with _of_url():
                await sent.engine.webhooks.update(sent.place, sent.one.id, WebhookUpdate(**changes), actor=sent.actor)
        return Result()


def waiting_words(visit: Visit, progress: WebhookProgress) -> str:
    """Return how far an endpoint is behind, in events and in time."""
    if progress.waiting_since is None:
        return "Nothing" if progress.is_all else "Perhaps some"
    since = words.duration((visit.now - progress.waiting_since).total_seconds())
    more = "" if progress.is_all else " or more"
    return f"{words.plural(progress.waiting, 'event')}{more}, the oldest of {since} ago"


def answer_words(attempt: WebhookAttempt) -> str:
    """Return the result of a delivery, in words."""
    if attempt.status is None:
        return words.capitalized(failure_words(None, attempt.error))
    try:
        return f"{attempt.status} {HTTPStatus(attempt.status).phrase}"
    except ValueError:
        return str(attempt.status)


def _state(visit: Visit, one: Webhook, progress: WebhookProgress) -> str:
    cursor = progress.cursor
    match one.state:
        case "paused":
            return "Paused by a person"
        case "disabled":
            return f"Disabled: {DISABLED_REASONS.get(one.reason or '', one.reason or '')}"
        case _ if cursor.failing_since is None:
            return "Active"
    since = words.duration((visit.now - cursor.failing_since).total_seconds())
    return f"Failing for {since}" + ("" if cursor.probe_at is None else ": one event is tried until it succeeds")


def _last_words(visit: Visit, progress: WebhookProgress) -> str:
    last = progress.last
    if last is None:
        return "None yet"
    return f"{answer_words(last)}, {words.duration((visit.now - last.at).total_seconds())} ago"


def _advice(one: Webhook, last: WebhookAttempt | None) -> str:
    """Return what to do about an endpoint whose last delivery failed, or that gets none."""
    if last is None or one.state == "paused" or is_success(last.status):
        return ""
    if last.status is None:
        return _ADVICE.get((last.error or "").partition(": ")[0], "")
    if last.status == HTTPStatus.GONE:
        return _GONE
    return _REDIRECT if last.status // 100 == HTTPStatus.MULTIPLE_CHOICES // 100 else _REFUSED


def _row(visit: Visit, attempt: WebhookAttempt) -> TableRow:
    is_event = attempt.number > 0
    answer = attempt.answer if len(attempt.answer) <= _ANSWER_SHOWN else f"{attempt.answer[:_ANSWER_SHOWN]}…"
    took = words.number(attempt.duration_ms)
    return TableRow(
        cells=(
            f"{attempt.number} {attempt.type}" if is_event else attempt.type,
            at(visit, attempt.at),
            f"{answer_words(attempt)}, after {took} ms",
            answer,
        ),
        sends={"number": str(attempt.number)} if is_event else {},
    )


def _of(action: SetUpAction, **more: Any) -> SetUpAction:
    return attrs.evolve(action, right=None, **more)


def _button(name: str, label: str, done: str, *states: str, primary: bool = False) -> SetUpAction:
    async def do(sent: Sent) -> Result:
        await getattr(sent.engine.webhooks, name)(sent.place, sent.one.id, actor=sent.actor)
        return Result()

    return SetUpAction(
        name=name,
        label=label,
        command=f"webhooks {name}",
        operation=f"{name}Webhook",
        do=do,
        done=done,
        primary=primary,
        possible=lambda on: on.one.state in states,
    )


def _inputs(model: type[Any], one: Webhook | None) -> Sequence[Input]:
    own: Mapping[str, Mapping[str, Any]] = {
        "url": {"kind": "text"},
        "payload": {"kind": "choice", "choices": _PAYLOADS, "hint": _FULL},
        "types": {"kind": "ticks", "choices": _TYPES, "value": "\n".join(() if one is None else _ticked(one))},
    }
    return [attrs.evolve(field, **own.get(field.name, {})) for field in inputs_of(model, one)]


def _ticked(one: Webhook) -> Sequence[str]:
    """Return the types that the patterns of an endpoint mean; none where it gets all."""
    return [name for name, _ in _TYPES if any(fnmatchcase(name, pattern) for pattern in one.types)]


def _types_of(sent: Sent) -> Sequence[str]:
    """Return the types of a form; the patterns that are held where they mean the same."""
    held: Webhook = sent.one
    chosen = tuple(sent.values["types"])
    return held.types if list(chosen) == list(_ticked(held)) else chosen


async def _rotation_fields(_: On) -> Sequence[Input]:
    return inputs_of(WebhookRotation)


async def _rotate(sent: Sent) -> Result:
    how = WebhookRotation(**sent.values)
    made = await sent.engine.webhooks.rotate(sent.place, sent.one.id, how, idempotency_key=sent.key, actor=sent.actor)
    hours = words.plural(how.overlap_hours, "hour")
    return _with_secret(
        made,
        f"Deliveries are signed with the one before too for {hours}: replace it in your program by then."
        if how.overlap_hours
        else "The one before is no longer valid.",
    )


@contextmanager
def _of_url() -> Iterator[None]:
    """Have an error about where the URL leads stand at its field."""
    try:
        yield
    except InvalidRequest as error:
        if error.details:
            raise
        raise InvalidRequest.at("url", f"is refused. {error.message}") from None


def _with_secret(made: CreatedWebhook, text: str) -> Result:
    if made.secret is None:
        raise Conflict(_REPEATED.format(id=made.webhook.id))
    return Result(text=f"{text}\n{_ONCE}", secret=made.secret)


async def _replay_fields(on: On) -> Sequence[Input]:
    zone = on.visit.clocks().name
    return [
        Input(
            name="number",
            label="Number of the first event",
            hint="As in the table of deliveries.",
            kind="number",
            optional=True,
            longest=12,
        ),
        Input(name="at", label="Or its time", hint=f"By the clocks of {zone}.", kind="moment", optional=True),
        Input(name="only", label="The event with this number alone", kind="tick", optional=True),
    ]


async def _replay(sent: Sent) -> Result:
    number, written = sent.values["number"], sent.values["at"]
    if (number is None) == (written is None):
        raise InvalidRequest(_NO_START)
    problems: dict[str, str] = {}
    begin = None if written is None else moment_in({"at": written}, "at", sent.visit.zone(), problems)
    if problems:
        raise InvalidRequest.at("at", _NO_MOMENT)
    start = WebhookReplay(number=number, at=begin, only=bool(sent.values["only"]))
    await sent.engine.webhooks.replay(sent.place, sent.one.id, start, actor=sent.actor)
    return Result()
