"""The pages of the set-up: each noun has a list, or one page, and a page for each of its things."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

import attrs
from starlette.exceptions import HTTPException
from starlette.responses import Response

from outreach import ConfigError, InvalidRequest, NotFound
from outreach.errors import Conflict
from outreach.server_support import JoinedReads
from outreach_server.console import words
from outreach_server.console.access import Right
from outreach_server.console.context import Visit
from outreach_server.console.identities.proof import PROOF_FIELD, needs_proof, problem_of_proof
from outreach_server.console.pages.campaign_views import MomentView, moment_of
from outreach_server.console.pages.set_up.every import NOUNS
from outreach_server.console.pages.set_up.inputs import Input, problems_in, read_inputs
from outreach_server.console.pages.set_up.nouns import Cell, Listed, Noun, On, Result, Sent, SetUpAction, digest_of
from outreach_server.console.pages.views import Tab
from outreach_server.console.security.forms import ACTION_FIELD, KEY_FIELD
from outreach_server.console.sent_again import as_of_form

Page = Callable[[Visit], Awaitable[Response]]

SEEN_FIELD: Final = "seen"
TYPED_FIELD: Final = "typed"
PREVIEW_FIELD: Final = "previewed"

_SAID: Final = "done"
_SHOW: Final = "Show the next dates"
_OTHER_NAME: Final = "This is another name."
_IMPOSSIBLE: Final = (
    "Nothing was done: its state does not allow this any more. If you sent this form twice, the first time counts."
)


@attrs.frozen(kw_only=True)
class SetUpPage:
    """A page to be routed."""

    path: str
    name: str
    right: Right
    show: Page
    act: Page | None


@attrs.frozen(kw_only=True)
class FormView:
    """A form of a page.

    Attributes:
        id: What the identifiers of its fields begin with.
        problems: What is wrong with its fields, by name.
        open: Whether it is shown at once.
        proof: Whether it asks for the password.
        name: The name that is to be typed; empty if none is.
        typed: What was typed.
        preview: The lines that are shown before it is done.
        previewed: Their digest, by which the form does what they say; empty before.
    """

    id: str
    label: str
    title: str
    url: str
    groups: Sequence[tuple[str, Sequence[Input]]]
    problems: Mapping[str, str]
    open: bool
    proof: bool
    name: str
    typed: str
    effect: str
    seen: str
    key: str
    primary: bool
    preview: Sequence[str]
    previewed: str

    @property
    def alone(self) -> bool:
        """Whether it is a button without fields."""
        return not (self.groups or self.proof or self.name)


@attrs.frozen(kw_only=True)
class Row:
    """A row of a list."""

    name: str
    url: str
    cells: Sequence[tuple[str, Cell]]


@attrs.frozen(kw_only=True)
class Tried:
    """A form that was sent and is shown again.

    Attributes:
        action: What it was for.
        status: The status of the answer.
        problems: What is wrong with its fields, by name; under no name what is wrong with the whole.
        result: What was done, where the page says so at once.
        preview: The lines that are shown before it is done; None if that is not the reason.
    """

    action: SetUpAction
    status: int = 200
    problems: Mapping[str, str] = attrs.field(factory=dict)
    result: Result | None = None
    preview: Sequence[str] | None = None

    def id_of(self, name: str) -> str:
        """Return the identifier of a field on the page; empty for what is of none."""
        return f"{self.action.name}-{name}" if name else ""


def set_up_pages(*, has_login: bool) -> Sequence[SetUpPage]:
    """Return all pages of the set-up."""
    found = []
    for noun in NOUNS:
        if noun.own_login and not has_login:
            continue
        views = Views(noun)
        before = "/w/{workspace}" if noun.place == "workspace" else "/system"
        path, right = f"{before}/{noun.name.removeprefix('system-')}", noun.right
        if noun.shape == "single":
            found.append(SetUpPage(path=path, name=noun.name, right=right, show=views.show_one, act=views.act_on_one))
            continue
        act = views.act if noun.on_list else None
        found.append(SetUpPage(path=path, name=noun.name, right=right, show=views.show, act=act))
        if noun.shape == "many":
            one = f"{noun.name}-one"
            act = views.act_on_one if noun.on_one else None
            found.append(SetUpPage(path=f"{path}/{{id}}", name=one, right=right, show=views.show_one, act=act))
    return found


class Views:
    """The pages of a noun.

    Args:
        noun: The noun.
    """

    def __init__(self, noun: Noun) -> None:
        self._noun = noun

    async def show(self, visit: Visit) -> Response:
        """Show the list."""
        return await self._list(visit)

    async def act(self, visit: Visit) -> Response:
        """Do what a form of the list says."""
        action = _action_of(visit, self._noun.on_list)
        tried = await self._try(visit, action, None)
        return tried if isinstance(tried, Response) else await self._list(visit, tried)

    async def show_one(self, visit: Visit) -> Response:
        """Show one of them."""
        return await self._one(visit, await self._get(visit))

    async def act_on_one(self, visit: Visit) -> Response:
        """Do to one of them what a form says."""
        one = await self._get(visit)
        action = _action_of(visit, self._noun.on_one)
        tried = await self._try(visit, action, one)
        if isinstance(tried, Response):
            return tried
        return await self._one(visit, one if tried.result is None else await self._get(visit), tried)

    async def _get(self, visit: Visit) -> Any:
        return await self._noun.get(visit, visit.request.path_params.get("id", ""))

    async def _try(self, visit: Visit, action: SetUpAction, one: Any) -> Response | Tried:
        """Do what a form says; return where that leads, or how the form is shown again."""
        key = visit.form.get(KEY_FIELD, "")
        if not 1 <= len(key) <= 100:
            raise HTTPException(400)
        if not action.possible(On(visit=visit, one=one)):
            return Tried(action=action, status=409, problems={"": _IMPOSSIBLE})
        fields = await action.fields(On(visit=visit, one=one))
        values, problems = read_inputs(fields, visit.form)
        if action.typed and not _is_name(visit.form.get(TYPED_FIELD, ""), self._noun.called(one)):
            problems[TYPED_FIELD] = _OTHER_NAME
        if action.proof and not problems and (wrong := await problem_of_proof(visit)):
            problems[PROOF_FIELD] = wrong
        if problems:
            return Tried(action=action, status=422, problems=problems)
        if action.changes and visit.form.get(SEEN_FIELD, "") != digest_of(one):
            return Tried(action=action, status=409, problems={"": await action.changed(On(visit=visit, one=one))})
        try:
            sent = Sent(visit=visit, one=one, values=values, key=f"console:{key}")
            if action.preview is not None:
                preview = await action.preview(sent)
                if visit.form.get(PREVIEW_FIELD, "") != digest_of(preview):
                    return Tried(action=action, preview=preview)
            result = await action.do(sent)
        except InvalidRequest as error:
            return Tried(action=action, status=422, problems=problems_in(as_of_form(error), fields))
        except (Conflict, ConfigError) as error:
            return Tried(action=action, status=409, problems={"": error.message})
        if result.text or result.secret:
            return Tried(action=action, result=result)
        return self._go(visit, result, action)

    def _go(self, visit: Visit, result: Result, action: SetUpAction) -> Response:
        here = visit.request.path_params.get("id")
        match result.goes_to:
            case "same" if here is not None:
                return visit.go(f"{self._noun.name}-one", id=here, said=action.name)
            case "same" | "list":
                return visit.go(self._noun.name, said=action.name)
            case identifier:
                return visit.go(f"{self._noun.name}-one", id=identifier, said=action.name)

    async def _list(self, visit: Visit, tried: Tried | None = None) -> Response:
        noun = self._noun
        filters = await noun.filters(visit)
        after = visit.request.query_params.get("after") or None
        async with JoinedReads() as reads:
            listed = reads.start(self._rows(visit, after))
            given = reads.start(_fields_of(visit, noun.on_list, None))
        found, cells = listed.result()
        query = {one.name: one.value for one in filters}
        rows = [
            Row(
                name=noun.called(one),
                url="" if noun.shape == "rows" else visit.url(f"{noun.name}-one", id=noun.identify(one)),
                cells=list(zip(noun.columns[1:], row, strict=True)),
            )
            for one, row in zip(found.items, cells, strict=True)
        ]
        first = noun.is_begun(visit) or not (rows or any(query.values()))
        return self._page(
            visit,
            "list",
            noun.title,
            tried,
            forms=self._forms(visit, given.result(), None, tried, first=first),
            rows=rows,
            columns=noun.columns,
            filters=filters,
            first_url=visit.url(noun.name, query) if after else "",
            next_url=visit.url(noun.name, {**query, "after": found.next}) if found.next else "",
            file_url=visit.url(noun.file, query) if noun.file and rows else "",
            nothing=noun.empty,
            about=noun.name,
        )

    async def _one(self, visit: Visit, one: Any, tried: Tried | None = None) -> Response:
        noun = self._noun
        single = noun.shape == "single"
        here = visit.request.path_params.get("id")
        after = visit.request.query_params.get("after") or None
        async with JoinedReads() as reads:
            facts = reads.start(noun.facts(visit, one))
            drawing = reads.start(noun.drawing(visit, one))
            table = reads.start(noun.table(visit, one, after))
            given = reads.start(_fields_of(visit, noun.on_one, one))
        rows = table.result()
        here_url = visit.url(noun.name) if here is None else visit.url(f"{noun.name}-one", id=here)
        view = live_view(visit) if noun.live and not after else None
        return self._page(
            visit,
            "one",
            noun.title if single else noun.one.capitalize(),
            tried,
            name="" if single else noun.called(one),
            list_url="" if single else visit.url(noun.name),
            facts=facts.result(),
            drawing=drawing.result(),
            table=rows,
            row_key=visit.new_key(),
            here_url=here_url,
            stream_url="" if view is None else visit.url("live", {"of": f"{noun.live}:{here}"}),
            view=view,
            first_url=visit.url(f"{noun.name}-one", id=here) if after and not single else "",
            next_url=visit.url(f"{noun.name}-one", {"after": rows.next}, id=here) if rows and rows.next else "",
            forms=self._forms(visit, given.result(), one, tried, first=True),
        )

    async def _rows(self, visit: Visit, after: str | None) -> tuple[Listed, Sequence[Sequence[Cell]]]:
        found = await self._noun.list(visit, after)
        try:
            return found, await self._noun.cells(visit, found.items)
        except NotFound:
            # One of them was removed in between.
            found = await self._noun.list(visit, after)
            return found, await self._noun.cells(visit, found.items)

    def _forms(
        self,
        visit: Visit,
        given: Sequence[tuple[SetUpAction, Sequence[Input]]],
        one: Any,
        tried: Tried | None,
        *,
        first: bool,
    ) -> Sequence[FormView]:
        return [
            self._form(
                visit, action, fields, one, tried if tried is not None and tried.action is action else None, first
            )
            for action, fields in given
        ]

    def _form(
        self, visit: Visit, action: SetUpAction, fields: Sequence[Input], one: Any, tried: Tried | None, first: bool
    ) -> FormView:
        noun = self._noun
        here = visit.request.path_params.get("id")
        url = visit.url(noun.name) if here is None else visit.url(f"{noun.name}-one", id=here)
        again = tried is not None and tried.result is None
        if again:
            fields = [attrs.evolve(field, value=field.written(visit.form)) for field in fields]
        problems = tried.problems if tried is not None else {}
        preview = tried.preview if tried is not None else None
        if action.preview is not None:
            # The browser goes to what is shown before.
            url = f"{url}#{action.name}-preview"
        return FormView(
            id=action.name,
            label=action.label if action.preview is None or preview is not None else _SHOW,
            title=action.title or action.label,
            url=url,
            groups=[(name, list(each)) for name, each in groupby(fields, key=lambda field: field.group)],
            problems=problems,
            open=again or (first and bool(fields) and (action.primary or noun.shape == "single")),
            proof=action.proof
            and visit.console.has_login
            and (PROOF_FIELD in problems or (needs_proof(visit) and not (tried and tried.result))),
            name=noun.called(one) if action.typed else "",
            typed=visit.form.get(TYPED_FIELD, "") if again else "",
            effect=action.effect,
            seen=digest_of(one) if action.changes else "",
            key=visit.new_key(),
            primary=action.primary,
            preview=preview or (),
            previewed="" if preview is None else digest_of(preview),
        )

    def _page(self, visit: Visit, template: str, title: str, tried: Tried | None, **values: Any) -> Response:
        noun = self._noun
        result = tried.result if tried is not None else None
        wrong = {} if tried is None else {tried.id_of(name): text for name, text in tried.problems.items()}
        return visit.page(
            f"set_up/{template}",
            title=title,
            current="settings",
            status=tried.status if tried is not None else 200,
            said=_said(visit, noun),
            heading=noun.title,
            tabs=tabs_of(visit, noun),
            problems=wrong,
            result=result,
            **values,
        )


@attrs.frozen(kw_only=True)
class LiveView:
    """When the live parts of a page were rendered."""

    as_of: MomentView


def live_view(visit: Visit) -> LiveView:
    """Return the moment of a rendering by the person's clocks."""
    return LiveView(as_of=moment_of(visit.now, visit.now, visit.clocks(), seconds=True))


def tabs_of(visit: Visit, current: Noun) -> Sequence[Tab]:
    """Return the pages of the set-up that the person may see beside one."""
    return [
        Tab(word=one.title, url=visit.url(one.name), current=one is current)
        for one in NOUNS
        if one.place == current.place and visit.may(one.right) and (visit.console.has_login or not one.own_login)
    ]


async def _fields_of(
    visit: Visit, actions: Sequence[SetUpAction], one: Any
) -> Sequence[tuple[SetUpAction, Sequence[Input]]]:
    """Return what the person may do, with the fields of its form, which are read at once."""
    on = On(visit=visit, one=one)
    shown = [action for action in actions if action.is_open_to(visit) and action.possible(on)]
    fields = await asyncio.gather(*(action.fields(on) for action in shown))
    return list(zip(shown, fields, strict=True))


def _action_of(visit: Visit, actions: Sequence[SetUpAction]) -> SetUpAction:
    """Return what a form asks for.

    Raises:
        HTTPException: There is no such action, or the person may not do it.
    """
    wanted = visit.form.get(ACTION_FIELD, "")
    for action in actions:
        if action.name == wanted:
            if action.right is not None:
                visit.require(action.right)
            return action
    raise HTTPException(400, words.NO_SUCH_ACTION)


def _said(visit: Visit, noun: Noun) -> str:
    wanted = visit.request.query_params.get(_SAID, "")
    return next((one.done for one in (*noun.on_list, *noun.on_one) if one.name == wanted), "")


def _is_name(typed: str, name: str) -> bool:
    return " ".join(typed.split()) == " ".join(words.visible(name).split())
