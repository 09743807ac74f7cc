"""The actions of a person on a campaign, with the right that each takes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias, cast

import attrs

from outreach import Campaign, CampaignStatus, Outreach
from outreach.models import CampaignAction
from outreach.reasons import SAFE_RESUME_OPTIONS
from outreach.server_support import operator_actions
from outreach_server.console.access import Right, Role, may

_Method: TypeAlias = Callable[..., Awaitable[Campaign]]

_OPEN: Final = frozenset({CampaignStatus.SCHEDULED, CampaignStatus.ACTIVE, CampaignStatus.PAUSED})


@attrs.frozen(kw_only=True)
class Action:
    """An action of a person on a campaign.

    Attributes:
        name: The method of `engine.campaigns` that does it; it is the name in forms too.
        label: The words of its button.
        icon: The name of its icon.
        right: The right that it takes.
        done: The message after it.
        typed: Whether the campaign's name has to be typed, because it cannot be undone.
        primary: Whether it is the action that a person most likely wants.
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
            case "close":
                return campaign.stay_open and campaign.status in _OPEN
            case _:
                return CampaignAction(self.name) in operator_actions(campaign.status)

    def asks_about(self, campaign: Campaign) -> bool:
        """Return whether it may contact people twice, so that a person has to be sure."""
        return self.name == "resume" and campaign.pause_reason in SAFE_RESUME_OPTIONS

    async def do(self, engine: Outreach, campaign: Campaign, *, key: str, actor: str, **more: object) -> Campaign:
        """Do it, once for a key; the method gets `more` too.

        Raises:
            OutreachError: That of the method.
        """
        method = cast(_Method, getattr(engine.campaigns, self.name))
        arguments: dict[str, Any] = {"idempotency_key": key, "actor": actor, **more}
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
        name="close",
        label="Close",
        icon="check",
        right=Right.CANCEL,
        done="It is closed: it completes once every contact has ended.",
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

FOR_MANY: Final[Mapping[str, str]] = MappingProxyType(
    {"resume": "Resumed", "pause": "Paused", "archive": "Archived", "unarchive": "Brought back"}
)
"""The actions that can be done to many campaigns at once, with the word for what was done: those that can be undone."""


def actions_on(campaign: Campaign, role: Role) -> Sequence[Action]:
    """Return the actions that a role may take on a campaign in its present state."""
    return [one for one in ACTIONS.values() if may(role, one.right) and one.is_possible(campaign)]


@attrs.frozen(kw_only=True)
class Counterpart:
    """The command and operation with the effect of a form of the console.

    Attributes:
        command: Its command, without the program's name.
        operation: The `operationId` of its operation in `openapi.yaml`; empty for actions that only people take.
    """

    command: str
    operation: str = ""


DRAFTING: Final[Mapping[str, Counterpart]] = MappingProxyType(
    {
        "file": Counterpart(command="campaigns import", operation="createUpload"),
        "discard": Counterpart(command="campaigns import", operation="removeUpload"),
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
"""The actions of the steps of a new campaign, besides those above."""


@attrs.frozen(kw_only=True)
class FormAction(Counterpart):
    """An action of a form on something else than a campaign, or one that makes something of a campaign.

    Attributes:
        right: The right that it takes.
        done: The message after it; empty where the page that follows shows it.
    """

    right: Right
    done: str = ""


FORM_ACTIONS: Final[Mapping[str, FormAction]] = MappingProxyType(
    {
        "clone": FormAction(command="campaigns clone", operation="cloneCampaign", right=Right.DRAFT),
        "follow-up": FormAction(command="campaigns follow-up", operation="followUpCampaign", right=Right.DRAFT),
        "edit": FormAction(
            command="campaigns update",
            operation="updateCampaign",
            right=Right.DRAFT,
            done="It is changed: what has not been sent goes out as it is now.",
        ),
        "skip": FormAction(
            command="campaigns skip",
            operation="skipRecipient",
            right=Right.DECIDE,
            done="It is left out: this campaign sends nothing more to it.",
        ),
        "export": FormAction(command="campaigns export", operation="exportCampaign", right=Right.EXPORT),
        "export-register": FormAction(command="unsubscribes list", operation="listUnsubscribes", right=Right.EXPORT),
        "export-audit": FormAction(command="audit", right=Right.OWN),
        "export-system-audit": FormAction(command="audit", right=Right.OPERATE),
        "opt-out": FormAction(
            command="unsubscribes add",
            operation="addUnsubscribes",
            right=Right.DECIDE,
            done="It is on the register: no campaign contacts it any more.",
        ),
        "take-off": FormAction(
            command="unsubscribes remove",
            operation="removeUnsubscribe",
            right=Right.DECIDE,
            done="It is off the register: campaigns may contact it again.",
        ),
        "import-opt-outs": FormAction(command="unsubscribes import", operation="addUnsubscribes", right=Right.DECIDE),
        "undo-import": FormAction(
            command="unsubscribes undo",
            operation="removeUnsubscribe",
            right=Right.DECIDE,
            done="The import is taken back. Numbers that something else keeps on the register stay on it.",
        ),
        "opted-out": FormAction(
            command="unsubscribes resolve",
            operation="resolveUnsubscribe",
            right=Right.REPLY,
            done="It is on the register: the message was an opt-out.",
        ),
        "not-opted-out": FormAction(
            command="unsubscribes resolve",
            operation="resolveUnsubscribe",
            right=Right.REPLY,
            done="It is not on the register: campaigns continue with this number.",
        ),
        "answer": FormAction(
            command="test-send", operation="sendSms", right=Right.REPLY, done="The answer is on its way."
        ),
        "erase": FormAction(
            command="purge",
            operation="erasePerson",
            right=Right.ERASE,
            done="The person is erased. An opt-out stays as a hash, so that nobody contacts the number again.",
        ),
        "look-up": FormAction(
            command="dispatches look-up",
            operation="lookUpDispatch",
            right=Right.DECIDE,
            done="The provider was asked, and had an answer: the request is settled.",
        ),
        "assume_sent": FormAction(
            command="dispatches resolve",
            operation="decideDispatches",
            right=Right.DECIDE,
            done="It counts as sent: the contact gets nothing more for this request.",
        ),
        "retry": FormAction(
            command="dispatches resolve",
            operation="decideDispatches",
            right=Right.DECIDE,
            done="It is tried again, unless evidence comes first.",
        ),
        "outcome": FormAction(
            command="calls set-outcome",
            operation="setCallOutcome",
            right=Right.DECIDE,
            done="The outcome is set, and final.",
        ),
        "call-again": FormAction(
            command="test-send", operation="createCall", right=Right.START, done="The number is called again."
        ),
    }
)
"""The actions of the forms of the other pages."""
