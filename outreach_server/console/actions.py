"""What a person can do to a campaign, with the right that it takes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias, cast

import attrs

from outreach import Campaign, CampaignStatus, Outreach
from outreach.models import CampaignAction
from outreach.server_support import operator_actions
from outreach_server.console.access import Right, Role, may

_Method: TypeAlias = Callable[..., Awaitable[Campaign]]

_OPEN: Final = frozenset({CampaignStatus.SCHEDULED, CampaignStatus.ACTIVE, CampaignStatus.PAUSED})


@attrs.frozen(kw_only=True)
class Action:
    """Something that a person does to a campaign.

    Attributes:
        name: The method of `engine.campaigns` that does it; it is the name in forms too.
        label: The words of its button.
        icon: The name of its icon.
        right: The right that it takes.
        done: What is said after it.
        typed: Whether the campaign's name has to be typed, because it cannot be undone.
        primary: Whether it is what a person most likely wants.
    """

    name: str
    label: str
    icon: str
    right: Right
    done: str
    typed: bool = False
    primary: bool = False

    @property
    def command(self) -> str:
        """Its command, without the program's name."""
        return f"campaigns {self.name}"

    @property
    def operation(self) -> str:
        """The `operationId` of its operation in `openapi.yaml`."""
        return f"{self.name}Campaign"

    def is_possible(self, campaign: Campaign) -> bool:
        """Return whether the state of a campaign allows it."""
        match self.name:
            case "archive":
                return campaign.archived_at is None and campaign.status not in _OPEN
            case "unarchive":
                return campaign.archived_at is not None
            case _:
                return CampaignAction(self.name) in operator_actions(campaign.status)

    async def do(self, engine: Outreach, campaign: Campaign, *, key: str, actor: str) -> Campaign:
        """Do it, once for a key.

        Raises:
            OutreachError: That of the method.
        """
        method = cast(_Method, getattr(engine.campaigns, self.name))
        arguments: dict[str, Any] = {"idempotency_key": key, "actor": actor}
        return await method(campaign.workspace_id, campaign.id, **arguments)


_ALL: Final = (
    Action(name="resume", label="Resume", icon="play", right=Right.START, done="It goes on.", primary=True),
    Action(name="start", label="Start", icon="play", right=Right.START, done="It has started.", primary=True),
    Action(
        name="pause",
        label="Pause",
        icon="pause",
        right=Right.PAUSE,
        done="It is paused: no request starts any more. Resume lets it go on where it stopped.",
    ),
    Action(
        name="unschedule",
        label="Take back the start",
        icon="calendar-clock",
        right=Right.START,
        done="The clock does not start it any more.",
    ),
    Action(
        name="archive",
        label="Archive",
        icon="archive",
        right=Right.DRAFT,
        done="It is archived: lists hide it, and it can be brought back.",
    ),
    Action(name="unarchive", label="Bring back", icon="archive", right=Right.DRAFT, done="It is in the lists again."),
    Action(
        name="cancel",
        label="Cancel",
        icon="x",
        right=Right.CANCEL,
        done="It is cancelled: contacts that waited are not contacted any more.",
        typed=True,
    ),
)

ACTIONS: Final[Mapping[str, Action]] = MappingProxyType({one.name: one for one in _ALL})
"""Every action of the console, in the order of its buttons."""


def actions_on(campaign: Campaign, role: Role) -> Sequence[Action]:
    """Return what a role may do to a campaign in its present state."""
    return [one for one in ACTIONS.values() if may(role, one.right) and one.is_possible(campaign)]


@attrs.frozen(kw_only=True)
class Counterpart:
    """What does the same as a form of the console.

    Attributes:
        command: Its command, without the program's name.
        operation: The `operationId` of its operation in `openapi.yaml`; empty for what only people do.
    """

    command: str
    operation: str = ""


DRAFTING: Final[Mapping[str, Counterpart]] = MappingProxyType(
    {
        "file": Counterpart(command="campaigns import", operation="createUpload"),
        "read": Counterpart(command="campaigns import", operation="checkUpload"),
        "rejects": Counterpart(command="campaigns import", operation="listUploadRejects"),
        "load": Counterpart(command="campaigns import", operation="loadUpload"),
        "save": Counterpart(command="campaigns update", operation="updateCampaign"),
        "test": Counterpart(command="campaigns test-send", operation="sendTestMessage"),
        "check": Counterpart(command="campaigns preflight", operation="preflightCampaign"),
        "clock": Counterpart(command="campaigns clock", operation="getCampaignClock"),
        "approval": Counterpart(command="campaigns approval", operation="getCampaignApproval"),
        "approve": Counterpart(command="campaigns approve"),
    }
)
"""What the steps of a new campaign do besides the actions above."""
