"""One action on many campaigns: on those that were chosen, or on all that the filters of the list match."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs
from starlette.exceptions import HTTPException
from starlette.responses import Response

from outreach import Campaign, OutreachError
from outreach.server_support import JoinedReads
from outreach_server.console import words
from outreach_server.console.actions import ACTIONS, FOR_MANY, Action
from outreach_server.console.context import Visit
from outreach_server.console.pages.campaign_views import row_of
from outreach_server.console.pages.campaigns import CampaignFilter
from outreach_server.console.pages.new.steps import key_of
from outreach_server.console.security.forms import ACTION_FIELD

MOST: Final = 200
"""How many campaigns one form changes: each is a transaction of its own, of a few milliseconds."""

_CHOSEN: Final = "campaign"
_NUMBER: Final = "number"

_FROM_ROWS: Final = "rows"
"""The field that says that rows were chosen, so that none is not all."""


@attrs.frozen(kw_only=True)
class ManyButton:
    """A button that does something to many campaigns.

    Attributes:
        number: To how many, as the person reads it.
    """

    name: str
    label: str
    icon: str
    number: int
    key: str


@attrs.frozen(kw_only=True)
class Matching:
    """The campaigns that a page is about.

    Attributes:
        campaigns: The campaigns; empty if they are too many.
        total: How many match.
        query: The query that names them.
    """

    campaigns: Sequence[Campaign]
    total: int
    query: str

    def possible(self, action: Action) -> Sequence[Campaign]:
        """Return those whose state allows an action that needs no confirmation."""
        return [one for one in self.campaigns if action.is_possible(one) and not action.asks_about(one)]


async def show(visit: Visit) -> Response:
    """Show which campaigns are meant, and what can be done to how many of them."""
    return _page(visit, await _matching(visit))


async def act(visit: Visit) -> Response:
    """Do it to each of them, if they are as many as the button said."""
    name = visit.form.get(ACTION_FIELD, "")
    if name not in FOR_MANY:
        raise HTTPException(400, words.NO_SUCH_ACTION)
    action = ACTIONS[name]
    visit.require(action.right)
    key = key_of(visit)
    found = await _matching(visit)
    possible = found.possible(action)
    if visit.form.get(_NUMBER) != str(len(possible)):
        changed = (
            f"Nothing was done: now it would be {_campaigns(len(possible))}, which is not the number on the button. "
            "Look at them, and choose again."
        )
        return _page(visit, found, status=409, problems=[changed])
    refused = []
    for one in possible:
        try:
            await action.do(visit.engine, one, key=f"console:{key}:{one.id}", actor=visit.actor)
        except OutreachError as error:
            refused.append(f"Refused for “{one.name}”: {error.message}")
    done = f"{FOR_MANY[name]}: {_campaigns(len(possible) - len(refused))}."
    return _page(visit, await _matching(visit), done=done, problems=refused)


async def _matching(visit: Visit) -> Matching:
    """Return the campaigns that the address names.

    Raises:
        HTTPException: It names too many.
        NotFound: One of them is not there.
    """
    chosen = list(dict.fromkeys(visit.request.query_params.getlist(_CHOSEN)))
    if len(chosen) > MOST:
        raise HTTPException(400, f"Choose at most {MOST} campaigns.")
    if chosen or visit.request.query_params.get(_FROM_ROWS):
        async with JoinedReads() as reads:
            found = [reads.start(visit.engine.campaigns.get(visit.place.id, one)) for one in chosen]
        return Matching(campaigns=[one.result() for one in found], total=len(found), query=visit.request.url.query)
    page = await CampaignFilter.of(visit).read(visit, limit=MOST)
    total = page.total or 0
    return Matching(campaigns=[] if page.next else page.items, total=total, query=visit.request.url.query)


def _page(
    visit: Visit, found: Matching, *, status: int = 200, done: str = "", problems: Sequence[str] = ()
) -> Response:
    return visit.page(
        "many_campaigns",
        title="Several campaigns",
        current="campaigns",
        status=status,
        problems=problems,
        said=done,
        url_here=visit.url("campaigns-many") + (f"?{found.query}" if found.query else ""),
        total=_campaigns(found.total),
        too_many=found.total > len(found.campaigns),
        most=MOST,
        campaigns=[row_of(visit, one) for one in found.campaigns],
        left_out=any(ACTIONS[name].asks_about(one) for name in FOR_MANY for one in found.campaigns),
        buttons=[_button(visit, found, name) for name in FOR_MANY if visit.may(ACTIONS[name].right)],
    )


def _button(visit: Visit, found: Matching, name: str) -> ManyButton:
    action, number = ACTIONS[name], len(found.possible(ACTIONS[name]))
    label = f"{action.label} {_campaigns(number)}"
    return ManyButton(name=name, label=label, icon=action.icon, number=number, key=visit.new_key())


def _campaigns(number: int) -> str:
    return f"{number:,} campaign{'' if number == 1 else 's'}"
