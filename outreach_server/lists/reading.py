"""Reads an uploaded list: frame by frame, so that a helper process can hand them over.

This only computes. `outreach_server.lists.opening` runs it outside the event loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TextIO

import attrs
import orjson

from outreach.models import PreparedRecipient
from outreach.server_support import Field
from outreach_server.lists.contacts import ContactFile
from outreach_server.lists.errors import in_body_names
from outreach_server.lists.opt_outs import OptOutFile
from outreach_server.lists.rejects import Rejects
from outreach_server.lists.repeats import Repeats
from outreach_server.lists.report import list_document
from outreach_server.lists.tables import AUTO, Table, open_table

MAX_REJECTED: Final = 1_000
"""The most rejected rows that are named; all are counted."""

_NUMBERS_OF_A_FRAME: Final = 1_000


@attrs.frozen(kw_only=True)
class ListOptions:
    """How to read a list.

    Attributes:
        name: The file's name in messages.
        mapped: The columns of fields, by name or by number from 1.
        region: The region of local numbers.
        sheet: The sheet of an XLSX file; None for the first visible one.
        encoding: The encoding of a text file; None to detect it.
        delimiter: What separates the cells of a text file.
        templates: The texts that the contacts are to get.
        expected: The names that a voice agent expects.
        sms: Whether they are to get texts.
        corrections: Phone numbers in the place of those of the file, by the number of the row.
        rejects: The path of a CSV file for the rejected rows with their cells; None for no file.
        own: The path of a file with the workspace's own numbers, one a line, as `person_key` writes them: the list is
            one of opt-outs. None for a list of contacts.
    """

    name: str
    mapped: Mapping[Field, str] = attrs.field(factory=dict)
    region: str | None = None
    sheet: str | None = None
    encoding: str | None = None
    delimiter: str = AUTO
    templates: Sequence[str] = ()
    expected: Sequence[str] = ()
    sms: bool = True
    corrections: Mapping[str, str] = attrs.field(factory=dict)
    rejects: str | None = None
    own: str | None = None


class Frame(NamedTuple):
    """A part of what is read: the names of the columns, then contacts or numbers, at the end a document.

    Attributes:
        content: The names; contacts in tuples; rows with their numbers in tuples; JSON.
    """

    kind: Literal["columns", "contacts", "numbers", "document"]
    content: Any


def read_list(file: Path, options: ListOptions) -> Iterator[Frame]:
    """Yield the parts of a list.

    Raises:
        UnreadableList: It is none, or nothing says which column is the phone number.
    """
    with ExitStack() as stack:
        written: TextIO | None = None
        if options.rejects is not None:
            written = stack.enter_context(Path(options.rejects).open("x", encoding="utf-8", newline=""))
        rejects = stack.enter_context(Rejects(written, words=in_body_names))
        table = stack.enter_context(
            open_table(
                stack.enter_context(file.open("rb")),
                name=options.name,
                encoding=options.encoding,
                delimiter=options.delimiter,
                sheet=options.sheet,
            )
        )
        if options.own is not None:
            yield from _opt_outs(table, rejects, options, Path(options.own))
            return
        repeats = Repeats()
        contacts = ContactFile.open(table, mapped=options.mapped)
        contacts.numbers.region = options.region
        contacts.corrections = {int(row): number for row, number in options.corrections.items()}
        contacts.use_texts(options.templates, options.expected)
        yield Frame("columns", list(contacts.columns.headers))
        for chunk in contacts.chunks(rejects):
            repeats.see(contact.phone for contact in chunk if contact.phone is not None)
            yield Frame("contacts", [tuple(contact) for contact in chunk])
        yield Frame("document", orjson.dumps(_document(contacts, rejects, repeats.count(), sms=options.sms)))


def _opt_outs(table: Table, rejects: Rejects, options: ListOptions, own: Path) -> Iterator[Frame]:
    rejects.header(())
    found = OptOutFile.open(table, mapped=options.mapped)
    found.numbers.region = options.region
    found.own = frozenset(own.read_text("utf-8").splitlines())
    yield Frame("columns", [])
    numbers = found.read(rejects)
    while some := list(islice(numbers, _NUMBERS_OF_A_FRAME)):
        yield Frame("numbers", some)
    yield Frame("document", orjson.dumps(_with_rejects(found.document(), found.warnings(), rejects)))


def contacts_of(frame: Frame) -> list[PreparedRecipient]:
    """Return the contacts of a frame."""
    return list(map(PreparedRecipient._make, frame.content))


def _document(contacts: ContactFile, rejects: Rejects, duplicates: int, *, sms: bool) -> Mapping[str, Any]:
    document = {"rows": contacts.rows, "duplicates": duplicates, **list_document(contacts)}
    return _with_rejects(document, contacts.numbers.warnings(sms=sms), rejects)


def _with_rejects(document: Mapping[str, Any], warnings: Sequence[str], rejects: Rejects) -> Mapping[str, Any]:
    return {
        "number_warnings": warnings,
        **document,
        "rejected_count": rejects.count,
        "rejected": [orjson.loads(one) for one in islice(rejects.items(), MAX_REJECTED)],
    }
