"""The contacts of a new campaign: those that were read from the file, and those that are left out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from outreach import InvalidRequest, NotFound, OutreachError
from outreach.errors import Conflict, Forbidden
from outreach.http import EXPORT_CONTENT_TYPES
from outreach_server.console import words
from outreach_server.console.context import Visit
from outreach_server.console.pages.new.audience_request import FIELDS, NO_COLUMN, AudienceRequest, request_of
from outreach_server.console.pages.new.steps import Choice, go_to, problems_of, steps_of
from outreach_server.console.pages.uploading import REGION, SHEET, discard
from outreach_server.disconnects import while_client_waits
from outreach_server.download import DownloadResponse
from outreach_server.lists.errors import UnreadableList
from outreach_server.lists.loading import check_upload, load_list, opened_for, rejected_rows

_SHOWN_REJECTS: Final = 20
_PLACES: Final = (
    (re.compile(r"name its region: `region` for this file, `default_region` for the workspace"), "choose the country"),
    (re.compile(r"Name it with `map` \w+=COLUMN"), "Choose it below"),
    (re.compile(r", or map the column by its number: `map` \w+=\d+"), ""),
    (re.compile(r"`map` (\w+)=COLUMN"), r"the choice of the column for \1"),
    (re.compile(r"`sheet`(?: NAME)?"), f"“{SHEET.label}”"),
    (re.compile(r"`(\w+)`"), lambda found: f"“{found[1].replace('_', ' ')}”"),
)
"""The words of messages for the fields of a request, and the words of the page in their place."""

_PROBED_TEXT: Final = "x"
"""The text that the register and the other rules are tried with while there is none."""


@attrs.frozen(kw_only=True)
class ReadList:
    """The reading of a file.

    Attributes:
        document: As of `checkUpload`.
        contacts: How many can be contacted.
        problem: Why it cannot be loaded as it is; empty if it can.
    """

    document: Mapping[str, Any]
    contacts: int
    problem: str = ""

    @property
    def is_plain(self) -> bool:
        """Whether nothing in it has to be seen or decided by a person."""
        found = self.document
        overlaps = found["audience"]["campaigns"] if found["audience"] else ()
        return not (
            self.problem
            or found["rejected_count"]
            or found["duplicates"]
            or found["corrected"]
            or found["damaged"]
            or found["notes"]
            or found["number_warnings"]
            or found["preflight"]["left_out"]
            or any(one["people"] for one in overlaps)
        )


async def show(visit: Visit) -> Response:
    """Show what was read."""
    return await _page(visit, request_of(visit.request.query_params))


async def act(visit: Visit) -> Response:
    """Read the file anew by the form, send its rejected rows, or load its contacts into a draft."""
    request = request_of(visit.form)
    match visit.form.get("action", ""):
        case "read":
            return RedirectResponse(visit.url("new-audience", request.query()), 303)
        case "rejects":
            return await _rejects(visit, request)
        case "load":
            return await _load(visit, request)
        case _:
            raise HTTPException(400, words.NO_SUCH_ACTION)


async def load_if_plain(visit: Visit, request: AudienceRequest) -> Response | None:
    """Load a list in which nothing has to be decided; return None for another one, which its page shows."""
    try:
        if not (await _read_list(visit, request)).is_plain:
            return None
        return await _load(visit, request)
    except OutreachError:
        return None


async def _read_list(visit: Visit, request: AudienceRequest) -> ReadList:
    new = await request.new_campaign(visit, body=_PROBED_TEXT)
    wanted = attrs.evolve(request.reading(visit), campaign=new)
    lists = visit.console.lists
    document = await while_client_waits(visit.request, check_upload(lists, visit.place, request.upload, wanted))
    preflight = document["preflight"]
    return ReadList(
        document=document,
        contacts=0 if preflight is None else preflight["contacted"],
        problem=document["refusal"] or "",
    )


async def _load(visit: Visit, request: AudienceRequest) -> Response:
    # Of two people who load a file at once, both get the one campaign.
    lists, key = visit.console.lists, f"console:upload:{request.upload}"
    try:
        new = await request.new_campaign(visit)
        wanted = attrs.evolve(request.reading(visit), campaign=new)
        async with opened_for(lists, visit.place, request.upload, wanted) as opened:
            made = await load_list(lists, visit.place, wanted, opened, key, actor=visit.actor)
    except NotFound:
        # The form was sent twice, or a day ago: its list is loaded, or gone.
        return visit.go("campaigns")
    except (InvalidRequest, Conflict, Forbidden) as error:
        found = problems_of(error) if isinstance(error, InvalidRequest) else {"": error.message}
        return await _page(visit, request, status=422, problems=found)
    await discard(visit, request.upload)
    return go_to(visit, "text", made.campaign)


async def _rejects(visit: Visit, request: AudienceRequest) -> Response:
    upload = await visit.engine.uploads.get(visit.place.id, request.upload)
    return DownloadResponse(
        rejected_rows(visit.console.lists, visit.place, upload.id, request.reading(visit), actor=visit.actor),
        name=f"rejects-{upload.id}.csv",
        content_type=EXPORT_CONTENT_TYPES["csv"],
    )


async def _page(
    visit: Visit, request: AudienceRequest, *, status: int = 200, problems: Mapping[str, str] | None = None
) -> Response:
    try:
        upload = await visit.engine.uploads.get(visit.place.id, request.upload)
    except NotFound:
        return visit.go("new")
    found: ReadList | None = None
    problems = dict(problems or {})
    try:
        found = await _read_list(visit, request)
    except UnreadableList as error:
        problems = {**problems, "": error.message}
    except InvalidRequest as error:
        problems = {**problems_of(error), **problems}
    except (Conflict, Forbidden, NotFound) as error:
        problems = {**problems, "": error.message}
    if found is not None and found.problem:
        problems.setdefault("", found.problem)
    document = {} if found is None else found.document
    return visit.page(
        "new/audience",
        title="Contacts of a new campaign",
        current="campaigns",
        status=status,
        steps=steps_of(visit, "audience"),
        problems={name: in_words(text) for name, text in problems.items()},
        meaning=_meaning,
        in_words=in_words,
        request=request,
        file_name=upload.file_name,
        other_file_url=visit.url("new", request.query()),
        found=found,
        fields=[(name, word, _columns(name, request, document)) for name, word in FIELDS.items()],
        reading=[(REGION, request.region), (SHEET, request.sheet)],
        mapping=document.get("mapping", ()),
        rejected=_rejected(request, document),
        notes=[*document.get("notes", ()), *document.get("number_warnings", ())],
        left_out=[] if found is None or not document["preflight"] else document["preflight"]["left_out"],
        overlaps=_overlaps(document),
        leave=request.leave,
        key=visit.new_key(),
    )


@attrs.frozen(kw_only=True)
class RejectView:
    """A row that cannot be loaded, or whose number was corrected.

    Attributes:
        number: The text that was typed for its number; None if that would not correct it.
    """

    row: int
    column: str
    message: str
    number: str | None


def _rejected(request: AudienceRequest, document: Mapping[str, Any]) -> Sequence[RejectView]:
    """Return the first rows that cannot be loaded, and all whose numbers were corrected."""
    phones = {one["column"] for one in document.get("mapping", ()) if "phone_number" in (one["is"] or "").split(", ")}
    rows = {
        one["row"]: RejectView(
            row=one["row"],
            column=one["column"] or "",
            message=in_words(one["message"]),
            number=request.corrections.get(str(one["row"]), "") if one["column"] in phones else None,
        )
        for one in document.get("rejected", ())[:_SHOWN_REJECTS]
    }
    for text, number in request.corrections.items():
        row = int(text)
        rows.setdefault(row, RejectView(row=row, column="", message="corrected here", number=number))
    return [rows[row] for row in sorted(rows)]


def _meaning(read_as: str | None) -> str:
    """Return the meaning of a column: fields in words, values of the text in their braces."""
    fields = {"phone_number": "phone", **{name: name for name in FIELDS}}
    parts = [FIELDS[fields[one]] if one in fields else one for one in (read_as or "").split(", ") if one]
    return ", ".join(parts) or "left out"


def in_words(text: str) -> str:
    """Return a message about a list with the places of this page instead of the fields of a request."""
    for written, said in _PLACES:
        text = written.sub(said, text)
    return text


def _columns(field: str, request: AudienceRequest, document: Mapping[str, Any]) -> Sequence[Choice]:
    """Return the columns that a person can choose for a field, with the choice that holds.

    The first choice is none. Sent back, it leaves the reading by the names of the columns as it is.
    """
    own = {"phone": "phone_number"}.get(field, field)
    columns = {str(one["number"]): one["column"] or f"column {one['number']}" for one in document.get("mapping", ())}
    read = next(
        (str(one["number"]) for one in document.get("mapping", ()) if own in (one["is"] or "").split(", ")), NO_COLUMN
    )
    by_name = "by its name"
    if field not in request.columns:
        others = document.get("other_columns", ()) if field == "phone" else ()
        found = [columns.get(read, "no column"), *(one["column"] for one in others)]
        by_name += f": {', else '.join(found)}"
    choices = {"": by_name} | ({} if field == "phone" else {NO_COLUMN: "no column"}) | columns
    chosen = read if field in request.columns else ""
    return [Choice(value=value, word=words.visible(word), chosen=value == chosen) for value, word in choices.items()]


def _overlaps(document: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the campaigns that have some of the people, and those that are left out."""
    audience = document.get("audience")
    return [one for one in audience["campaigns"] if one["people"] or one["left_out"]] if audience else ()
