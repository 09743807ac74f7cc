"""The first step of a new campaign: its channel, its name and the file with its contacts."""

from __future__ import annotations

from functools import partial
from pathlib import PurePosixPath
from typing import Final

from starlette.responses import RedirectResponse, Response

from outreach import InvalidRequest
from outreach.errors import Conflict
from outreach.models import Upload
from outreach.server_support import JoinedReads
from outreach_server.console.context import Visit
from outreach_server.console.pages.new import audience
from outreach_server.console.pages.new.audience_request import AudienceRequest, request_of
from outreach_server.console.pages.new.steps import Choice, key_of, steps_of
from outreach_server.console.pages.uploading import discard, kept_file, kept_files, problem_of
from outreach_server.console.security.forms import ACTION_FIELD

_MOST_AGENTS: Final = 200
_NO_FILE: Final = "Choose a file with the contacts: a spreadsheet (.xlsx) or a text file (.csv)."
_NO_AGENT: Final = "Choose the agent that calls."
_LONGEST_NAME: Final = 100


async def show(visit: Visit) -> Response:
    """Show the form."""
    return await _page(visit, request_of(visit.request.query_params))


async def act(visit: Visit) -> Response:
    """Keep the file. Where nothing in it has to be decided, the next step is the text; else its page shows it."""
    key, request, file = key_of(visit), request_of(visit.form), visit.file
    if visit.form.get(ACTION_FIELD) == "discard":
        await discard(visit, request.upload)
        return visit.go("new")
    problems = {}
    if request.channel == "call" and not request.agent:
        problems["agent"] = _NO_AGENT
    wrong = problem_of(file, _NO_FILE)
    if file is None or wrong:
        return await _page(visit, request, status=422, problems={**problems, "file": wrong})
    if problems:
        problems["file"] = "Choose the file again: it was not kept."
        return await _page(visit, request, status=422, problems=problems)
    try:
        upload = await kept_file(visit, file, key, instead_of=request.upload)
    except InvalidRequest as error:
        return await _page(visit, request, status=422, problems={"file": error.message})
    except Conflict as error:
        return await _page(visit, request, status=409, problems={"file": error.message})
    chosen = request_of({**visit.form, "upload": upload.id, "name": request.name or _name_of(upload)})
    loaded = await audience.load_if_plain(visit, chosen)
    return loaded or RedirectResponse(visit.url("new-audience", chosen.query()), 303)


def _name_of(upload: Upload) -> str:
    """Return the name of a file for a campaign, without what is invisible, such as characters that turn the text."""
    stem = "".join(one for one in PurePosixPath(upload.file_name).stem if one.isprintable())
    return stem[:_LONGEST_NAME].strip() or "New campaign"


def _audience_url(visit: Visit, upload: Upload) -> str:
    return visit.url("new-audience", request_of({"upload": upload.id, "name": _name_of(upload)}).query())


async def _page(
    visit: Visit, request: AudienceRequest, *, status: int = 200, problems: dict[str, str] | None = None
) -> Response:
    async with JoinedReads() as reads:
        found = reads.start(visit.engine.agents.list(visit.place.id, limit=_MOST_AGENTS))
        kept = reads.start(kept_files(visit, partial(_audience_url, visit), without=request.upload))
    agents = found.result().items
    return visit.page(
        "new/file",
        title="New campaign",
        current="campaigns",
        status=status,
        steps=steps_of(visit, "audience"),
        problems=problems or {},
        upload=request.upload,
        name=request.name,
        channel=request.channel,
        agents=[
            Choice(value=one.id, word=one.name, chosen=one.id == request.agent) for one in agents if one.can_place_calls
        ],
        kept=kept.result(),
        kept_url=visit.url("new"),
        key=visit.new_key(),
    )
