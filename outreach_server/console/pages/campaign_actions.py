"""Doing what the buttons of a campaign say."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from starlette.exceptions import HTTPException

from outreach import Campaign, Conflict, WorkspaceStatus
from outreach_server.console import words
from outreach_server.console.actions import ACTIONS, Action, actions_on
from outreach_server.console.context import Visit
from outreach_server.console.pages.new.steps import REVISION_FIELD
from outreach_server.console.security.forms import ACTION_FIELD, KEY_FIELD
from outreach_server.words import CONTACTED_TWICE

NAME_FIELD = "name"
SURE_FIELD = "sure"


@attrs.frozen(kw_only=True)
class ButtonView:
    """A button that does something to a campaign.

    Attributes:
        url: Where its form is sent.
        typed: Whether the campaign's name has to be typed.
        asks: Whether it may contact people twice, so that the person has to be sure.
        key: The key of the form.
        revision: The revision that the page shows and a start sends; None for other actions.
    """

    name: str
    label: str
    icon: str
    url: str
    typed: bool
    asks: bool
    primary: bool
    key: str
    revision: int | None


class WrongName(Exception):
    """The name that was typed is not the campaign's.

    Attributes:
        typed: What was typed.
    """

    def __init__(self, typed: str) -> None:
        super().__init__(typed)
        self.typed = typed


def buttons_of(visit: Visit, campaign: Campaign, *, page: str = "campaign") -> Sequence[ButtonView]:
    """Return the buttons of what the person may do to a campaign now."""
    assert visit.role is not None  # noqa: S101 - a page of a workspace
    url = visit.url("campaign", campaign=campaign.id) if page == "campaign" else visit.url(page)
    return [_button(visit, campaign, one, url) for one in actions_on(campaign, visit.role) if may_send(visit, one)]


def may_send(visit: Visit, action: Action) -> bool:
    """Return whether the workspace allows an action: one that is not active sends nothing."""
    return visit.place.status is WorkspaceStatus.ACTIVE or action.name not in {"start", "resume"}


def _button(visit: Visit, campaign: Campaign, action: Action, url: str) -> ButtonView:
    return ButtonView(
        name=action.name,
        label=action.label,
        icon=action.icon,
        url=url,
        typed=action.typed,
        asks=action.asks_about(campaign),
        primary=action.primary,
        key=visit.new_key(),
        revision=campaign.revision if action.name == "start" else None,
    )


async def do_action(visit: Visit, campaign_id: str) -> Action:
    """Do to a campaign what a form says, and return what it was.

    Raises:
        HTTPException: There is no such action, the person may not do it, or a start names no revision.
        WrongName: It needs the campaign's name, and another one was typed.
        Conflict: The person has to be sure, and does not say so; or a start names another revision.
        OutreachError: The engine refuses it.
    """
    action = ACTIONS.get(visit.form.get(ACTION_FIELD, ""))
    if action is None:
        raise HTTPException(400, words.NO_SUCH_ACTION)
    visit.require(action.right)
    key = visit.form.get(KEY_FIELD, "")
    if not 1 <= len(key) <= 100:
        raise HTTPException(400)
    campaign = await visit.engine.campaigns.get(visit.place.id, campaign_id)
    if action.typed:
        typed = visit.form.get(NAME_FIELD, "")
        if " ".join(typed.split()) != " ".join(words.visible(campaign.name).split()):
            raise WrongName(typed)
    if action.asks_about(campaign) and not visit.form.get(SURE_FIELD):
        raise Conflict(f"Nothing was done. {CONTACTED_TWICE}")
    seen = {"revision": visit.shown_number(REVISION_FIELD)} if action.name == "start" else {}
    await action.do(visit.engine, campaign, key=f"console:{key}", actor=visit.actor, **seen)
    return action
