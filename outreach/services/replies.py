"""What a workspace answers to those who write STOP, START or HELP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, get_args

from outreach.errors import ErrorDetail, InvalidRequest
from outreach.models.message import ReplyPurpose
from outreach.models.settings import ReplySettings, ReplySettingsChange
from outreach.operations.common import note, reply_settings_of, workspace_of
from outreach.policy.replies import ReplyText, reply_text
from outreach.policy.texts import text_problem
from outreach.services.checks import changes_of, check_flags
from outreach.services.context import ServiceContext
from outreach.working_set import Transaction

MAX_REPLY: Final = 320
"""Characters of an answer: two segments of plain letters."""

_TEXTS: Final = ("stop_text", "start_text", "help_text")


class Replies:
    """How workspaces answer keywords; where a carrier answers by itself nothing of it is used."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    async def get(self, workspace_id: str) -> ReplySettings:
        """Return a workspace's settings.

        Raises:
            NotFound: There is no such workspace.
        """
        return await self._context.storage.read(lambda tx: reply_settings_of(tx, workspace_of(tx, workspace_id).id))

    async def texts(self, workspace_id: str) -> Sequence[ReplyText]:
        """Return the three answers as they would be sent now: after STOP, after START, to HELP.

        Raises:
            NotFound: There is no such workspace.
        """

        def operation(tx: Transaction) -> Sequence[ReplyText]:
            name, settings = workspace_of(tx, workspace_id).name, reply_settings_of(tx, workspace_id)
            return tuple(reply_text(settings, purpose, name) for purpose in get_args(ReplyPurpose))

        return await self._context.storage.read(operation)

    async def update(self, workspace_id: str, change: ReplySettingsChange, *, actor: str = "library") -> ReplySettings:
        """Change the fields that are given and return all; a text that is empty or None takes the default again.

        Raises:
            NotFound: There is no such workspace.
            InvalidRequest: A text is too long, blank or cannot be stored everywhere; nothing was changed.
        """
        changes = changes_of(change, ReplySettingsChange, clearable=_TEXTS)
        check_flags(changes, "enabled", "help_when_opted_out")
        details = [
            ErrorDetail(name, problem)
            for name in _TEXTS
            if (text := changes.get(name)) is not None and (problem := _problem(text)) is not None
        ]
        if details:
            raise InvalidRequest(details=details)

        def operation(tx: Transaction) -> ReplySettings:
            workspace_of(tx, workspace_id)
            after = change.apply(reply_settings_of(tx, workspace_id))
            tx.reply_settings.put(workspace_id, after)
            note(
                tx,
                now=self._context.now(),
                workspace_id=workspace_id,
                actor=actor,
                action="reply_settings.update",
                subject=workspace_id,
            )
            return after

        return await self._context.storage.write(operation)


def _problem(text: str) -> str | None:
    problem = text_problem(text)
    if problem is None and len(text) > MAX_REPLY:
        problem = f"must have at most {MAX_REPLY} characters, not {len(text)}"
    if problem is None and text and not text.strip():
        problem = "must not be blank; an empty text takes the default"
    return problem
