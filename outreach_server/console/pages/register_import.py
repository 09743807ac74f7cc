"""An import into the register of opt-outs: a file, what was read out of it, and its numbers put on the register."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, get_args

import attrs
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from outreach import InvalidRequest, NotFound
from outreach.errors import Conflict
from outreach.http import EXPORT_CONTENT_TYPES
from outreach.models import UnsubscribeScope, Upload
from outreach_server.console.context import Visit, not_found
from outreach_server.console.pages.new.audience import in_words
from outreach_server.console.pages.new.steps import Choice, key_of
from outreach_server.console.pages.number_history import SCOPES
from outreach_server.console.pages.uploading import (
    REGION,
    SHEET,
    ReadingField,
    discard,
    kept_file,
    kept_files,
    problem_of,
)
from outreach_server.disconnects import while_client_waits
from outreach_server.download import DownloadResponse
from outreach_server.lists.opt_out_imports import check_opt_outs, import_opt_outs, rejected_opt_outs
from outreach_server.lists.requests import ListRequest, read_list_request

_SHOWN_REJECTS: Final = 20
_LONGEST: Final = 200
_NO_FILE: Final = "Choose a file with the numbers: a spreadsheet (.xlsx) or a text file (.csv)."
_READ_NOW: Final = "The file is gone: its numbers are on the register, or a day has passed. Choose it again."
_FIRST_COLUMN: Final = re.compile(r"Say which one it is: `map` phone=(\d+)")


FIELDS: Final = (
    ReadingField(
        name="phone",
        label="Column of the numbers",
        hint="Its name, or its number from 1. Empty: every column whose name says so.",
    ),
    ReadingField(name="country", label="Column of the country", hint="Its name or number. Empty: by its name."),
    REGION,
    SHEET,
    ReadingField(name="encoding", label="Encoding of a text file", hint="Such as cp1250. Empty: it is detected."),
    ReadingField(name="delimiter", label="What separates cells", hint="Such as ; or tab. Empty: it is detected."),
)
"""The choices, as the options of the command have them."""

_COLUMNS: Final = frozenset({"phone", "country"})

_IMPORT: Final = "import"
"""The field with the id of an import that was done."""


@attrs.frozen(kw_only=True)
class ImportRequest:
    """The choices of a person for an import into the register.

    Attributes:
        chosen: The values of `FIELDS` that are not empty.
    """

    upload: str
    scope: str
    chosen: Mapping[str, str]

    def query(self) -> dict[str, object]:
        """Return it as the query of an address."""
        return {"upload": self.upload, "scope": self.scope, **self.chosen}

    def reading(self, visit: Visit) -> ListRequest:
        """Return how the file is read.

        Raises:
            InvalidRequest: A value cannot be; the details name its field.
        """
        mapped = {name: value for name, value in self.chosen.items() if name in _COLUMNS}
        others = {name: value for name, value in self.chosen.items() if name not in _COLUMNS}
        return read_list_request({"map": mapped, **others}, this_year=visit.now.year, carriers=())


async def show(visit: Visit) -> Response:
    """Show the form for the file, what was read out of it, or an import that was done."""
    query = visit.request.query_params
    if import_id := query.get(_IMPORT, ""):
        return await _imported_page(visit, import_id)
    return await _page(visit, _request_of(query))


async def act(visit: Visit) -> Response:
    """Keep a file, read it in another way, send its rejected rows, import or delete it, or take an import back."""
    key, request = key_of(visit), _request_of(visit.form)
    match visit.form.get("action", ""):
        case "file":
            return await _keep(visit, request, key)
        case "read":
            return RedirectResponse(visit.url("register-import", request.query()), 303)
        case "rejects":
            return await _rejects(visit, request)
        case "discard":
            await discard(visit, request.upload)
            return visit.go("register-import")
        case _:
            name = visit.chosen("import-opt-outs", "undo-import")
            return await (_import(visit, request) if name == "import-opt-outs" else _undo(visit))


def _request_of(given: Mapping[str, str]) -> ImportRequest:
    values = {one.name: given.get(one.name, "").strip()[:_LONGEST] for one in FIELDS}
    return ImportRequest(
        upload=given.get("upload", ""),
        scope=given.get("scope", "all"),
        chosen={name: value for name, value in values.items() if value},
    )


async def _keep(visit: Visit, request: ImportRequest, key: str) -> Response:
    file = visit.file
    wrong = problem_of(file, _NO_FILE)
    if file is None or wrong:
        return await _page(visit, request, status=422, problems={"file": wrong})
    try:
        upload = await kept_file(visit, file, key, instead_of=visit.form.get("replace", ""))
    except InvalidRequest as error:
        return await _page(visit, request, status=422, problems={"file": error.message})
    except Conflict as error:
        return await _page(visit, request, status=409, problems={"file": error.message})
    return RedirectResponse(visit.url("register-import", attrs.evolve(request, upload=upload.id).query()), 303)


async def _rejects(visit: Visit, request: ImportRequest) -> Response:
    upload = await visit.engine.uploads.get(visit.place.id, request.upload)
    return DownloadResponse(
        rejected_opt_outs(visit.console.lists, visit.place, upload.id, request.reading(visit), actor=visit.actor),
        name=f"rejects-{upload.id}.csv",
        content_type=EXPORT_CONTENT_TYPES["csv"],
    )


async def _import(visit: Visit, request: ImportRequest) -> Response:
    scope: Any = request.scope
    if scope not in get_args(UnsubscribeScope):
        raise HTTPException(400)
    try:
        done = await import_opt_outs(
            visit.console.lists, visit.place, request.upload, request.reading(visit), scope=scope, actor=visit.actor
        )
    except NotFound:
        # The form was sent twice, or a day ago.
        return visit.go("register")
    except (InvalidRequest, Conflict) as error:
        return await _page(visit, request, status=422, problems=_problems_of(error))
    return visit.go("register-import", query={_IMPORT: done.id, "added": done.added, "known": done.known})


async def _imported_page(visit: Visit, import_id: str) -> Response:
    """Show an import with the button that takes it back.

    Raises:
        HTTPException: The workspace has no such import.
    """
    entries = (await visit.engine.audit.list(visit.place.id, subject=import_id, limit=1)).items
    newest = entries[0].action if entries else ""
    if newest not in {"unsubscribes.import", "unsubscribes.undo_import"}:
        raise not_found()
    query = visit.request.query_params
    return visit.page(
        "register_imported",
        title="Import of opt-outs",
        current="register",
        import_id=import_id,
        undone=newest == "unsubscribes.undo_import",
        added=_count(query.get("added", "")),
        known=_count(query.get("known", "")),
        key=visit.new_key(),
    )


def _count(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0


async def _undo(visit: Visit) -> Response:
    try:
        await visit.engine.unsubscribes.undo_import(visit.place.id, visit.form.get(_IMPORT, ""), actor=visit.actor)
    except (InvalidRequest, NotFound):
        # It was taken back before.
        return visit.go("register")
    return visit.go("register", said="undo-import")


def _problems_of(error: InvalidRequest | Conflict) -> dict[str, str]:
    """Return the problems by the field of the form; one about no field has an empty name."""
    details = error.details if isinstance(error, InvalidRequest) else ()
    labels = {one.name: one.label for one in FIELDS}
    found: dict[str, str] = {}
    for one in details:
        name = one.path.removeprefix("map.")
        found.setdefault(name if name in labels else "", f"{labels.get(name, name)} {one.message.rstrip('.')}.")
    return {name: _in_words(text) for name, text in (found or {"": error.message}).items()}


def _in_words(text: str) -> str:
    """Return a message about a list with the places of this page instead of the fields of a request."""
    return in_words(_FIRST_COLUMN.sub(r"Name it below as the column of the numbers, such as \1", text))


async def _page(
    visit: Visit,
    request: ImportRequest,
    *,
    status: int = 200,
    problems: Mapping[str, str] | None = None,
) -> Response:
    problems = dict(problems or {})
    upload: Upload | None = None
    found: Mapping[str, Any] = {}
    if request.upload:
        try:
            upload = await visit.engine.uploads.get(visit.place.id, request.upload)
            check = check_opt_outs(visit.console.lists, visit.place, upload.id, request.reading(visit))
            found = await while_client_waits(visit.request, check)
        except NotFound:
            problems.setdefault("", _READ_NOW)
        except (InvalidRequest, Conflict) as error:
            problems = {**_problems_of(error), **problems}
    replaced = visit.form.get("replace", visit.request.query_params.get("replace", ""))
    kept = [] if upload else await kept_files(visit, partial(_url_of, visit), without=replaced)
    return visit.page(
        "register_import",
        title="Import of opt-outs",
        current="register",
        status=status,
        problems=problems,
        upload=upload,
        other_file_url=visit.url("register-import", {"replace": request.upload}),
        replaced=replaced,
        kept=kept,
        kept_url=visit.url("register-import"),
        found=found,
        fields=[(one, request.chosen.get(one.name, "")) for one in FIELDS],
        notes=[_in_words(one) for one in (*found.get("notes", ()), *found.get("number_warnings", ()))],
        rejected=[{**one, "message": _in_words(one["message"])} for one in found.get("rejected", ())[:_SHOWN_REJECTS]],
        scopes=_scopes(request.scope),
        key=visit.new_key(),
    )


def _url_of(visit: Visit, upload: Upload) -> str:
    return visit.url("register-import", {"upload": upload.id})


def _scopes(chosen: str) -> Sequence[Choice]:
    return [
        Choice(value=one, word=SCOPES[one].capitalize(), chosen=one == chosen) for one in get_args(UnsubscribeScope)
    ]
