"""Files with personal data: the password is asked for before, and the audit trail notes what went out."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
from starlette.responses import Response

from outreach_server.console.context import Visit
from outreach_server.console.identities.proof import PROOF_FIELD, needs_proof, problem_of_proof


@attrs.frozen(kw_only=True)
class Guard:
    """What stands before a file.

    Attributes:
        url: The address of the file, to which the form of the password is sent.
        action: The action of `FORM_ACTIONS` that the file is.
        why: What is in it.
        back: The name of the page that leads to it, and
        back_url: its address.
        current: The entry of the menu that it belongs to.
    """

    url: str
    action: str
    why: str
    back: str
    back_url: str
    current: str

    async def stops(self, visit: Visit) -> Response | None:
        """Return the page that asks for the password, where it is needed before the file.

        Raises:
            HTTPException: The host of the console has to ask, not the console.
        """
        if not needs_proof(visit):
            return None
        if not visit.console.has_login:
            await problem_of_proof(visit)
        return self._page(visit, 200, {})

    async def answer(self, visit: Visit) -> Response:
        """Check the password that a form has, and lead on to the file.

        Raises:
            HTTPException: The form is for something else, the person may not do it, or the host has to ask.
        """
        visit.chosen(self.action)
        if wrong := await problem_of_proof(visit):
            return self._page(visit, 422, {PROOF_FIELD: wrong})
        return visit.lead(self.url)

    def _page(self, visit: Visit, status: int, problems: Mapping[str, str]) -> Response:
        return visit.page(
            "proof",
            title="Your password",
            current=self.current,
            status=status,
            problems=problems,
            page_url=self.url,
            back=self.back,
            back_url=self.back_url,
            why=self.why,
            action=self.action,
            label="Go on to the file",
        )
