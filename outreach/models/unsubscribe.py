"""The unsubscribe register."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final, Literal

import attrs

from outreach.models.base import Channel
from outreach.models.fields import Checked, ListOf, Text, ruled, sized

UnsubscribeScope = Literal["all", "sms", "call"]
RegisterScope = Literal["all", "sms", "call", "held"]

HELD: Final = "held"
"""Scope of a held number, whose message may have been an opt-out: stops campaigns until an operator decides."""

KEYWORD: Final = "keyword"
"""Source of an entry made by the person's STOP, which START lifts."""

CARRIER: Final = "carrier"
"""Source of an entry made by a provider's refusal because of an opt-out."""

CALL: Final = "call"
"""Source of an entry made by a request in a call for no more calls."""

IMPORT: Final = "import"
"""Source of an entry made by the import of a list."""

_CLAIMS: Final = re.compile(r"(import [^:]*): ")
"""How the evidence of imports begins: with their ids."""

_ADDED: Final = re.compile(r"(?:(?P<own>.*); )?also (?P<imports>import [0-9a-f-]{36}[:,] .*row [0-9]+)", re.DOTALL)
"""The evidence of another source, and after it that of the imports, which ends with a row.

A message that quotes an import comes before them, and a file is not named by its later id."""

_TRACES: Final = re.compile(r"(?:(?:^|; )also (?:keyword|call), [0-9]{4}-[0-9]{2}-[0-9]{2})+$")
"""How a source's own evidence ends after later opt-outs of the person."""

_ALSO: Final = ", also "
_IMPORT: Final = "import "
_MAX_CLAIMS: Final = 6
_MAX_LENGTH: Final = 1000
"""Characters of evidence that has several parts."""

_MAX_SOURCE: Final = 20
_OTHERS: Final = "others"
"""Stands for claims that were left out, because the evidence was too long."""

_NOT_A_WORD: Final = re.compile(r"[\W_]+")

_WEAKEST: Final = -1
"""Rank of imports, which are named beside every other source."""

_STRENGTH: Final = {CARRIER: 0, KEYWORD: 1}
"""Sources that others replace: those with a greater rank."""

_LASTING: Final = 2
"""Rank of every other source: the first one stays."""


@attrs.frozen(kw_only=True)
class Unsubscribe:
    """A number that must not be contacted.

    Attributes:
        phone: E.164; for an erased person `#` and a hash.
        scope: The channels that it stops; `held` for one to be decided.
        source: `operator`, `import`, `KEYWORD`, `CARRIER` or `CALL`.
        evidence: Free text on why and when; None if none.
        created_at: When it was created, extended to more channels, or held again by a further message.
    """

    workspace_id: str
    phone: str
    scope: RegisterScope
    source: str
    evidence: str | None
    created_at: datetime

    def stops(self, channel: Channel) -> bool:
        """Return whether it stops a channel."""
        return self.scope in {"all", channel}

    def merged(self, other: Unsubscribe) -> Unsubscribe:
        """Return the entry for a number that is registered again.

        The scope only grows, and growing renews `created_at`. So does a further message of a held number, which joins
        the evidence, because a person has to read it too. A held entry gives way to an opt-out; one of a single
        channel then stops both, because the doubt was about both. The first source and evidence stay, so that an
        operator's entry is never weakened; but any other source replaces one of a keyword or carrier, so that START
        does not lift it. Of these two the keyword wins, because the carrier's refusal only repeats it. Imports replace
        nothing: they are added to the evidence, so that taking one back leaves all other evidence, and START leaves the
        imports. A later opt-out by keyword or call that does not replace the source leaves its newest date in the
        evidence.
        """
        if HELD in {self.scope, other.scope}:
            return _both_held(self, other) if self.scope == other.scope else _with_held(self, other)
        scope = self.scope if other.scope == self.scope else "all"
        shown, also = (other, self) if _rank(other) > _rank(self) else (_with_trace(self, other), other)
        return attrs.evolve(
            self,
            scope=scope,
            source=shown.source,
            evidence=_with_imports(shown, also),
            created_at=self.created_at if scope == self.scope else other.created_at,
        )


def import_evidence(import_id: str, row: int, file_name: str | None) -> str:
    """Return the evidence of a number that an import adds."""
    return f"{_IMPORT}{import_id}: {f'{file_name}, ' if file_name else ''}row {row}"


def is_of_import(entry: Unsubscribe, import_id: str) -> bool:
    """Return whether the evidence of an entry names an import."""
    return f"{_IMPORT}{import_id}" in _claims_of(entry)


def imports_of(entry: Unsubscribe) -> Sequence[str]:
    """Return the ids of the imports that the evidence of an entry names."""
    return [claim.removeprefix(_IMPORT) for claim in _claims_of(entry) if claim.startswith(_IMPORT)]


def without_import(entry: Unsubscribe, import_id: str) -> Unsubscribe | None:
    """Return an entry that names an import as it is without it; None if nothing else says that the person opted out."""
    claims = _claims_of(entry)
    claims.pop(f"{_IMPORT}{import_id}", None)
    if not _is_of_imports_alone(entry):
        return attrs.evolve(entry, evidence=_joined(_own_evidence(entry), claims))
    if not claims:
        return None
    if not any(claim.startswith(_IMPORT) for claim in claims):
        return entry
    return attrs.evolve(entry, evidence=_evidence_of(claims))


def imports_alone(entry: Unsubscribe) -> Unsubscribe | None:
    """Return the imports' evidence of an entry that also has another source; None if it has no imports."""
    claims = _claims_of(entry)
    return attrs.evolve(entry, source=IMPORT, evidence=_evidence_of(claims)) if claims else None


def without_keyword_trace(entry: Unsubscribe) -> Unsubscribe:
    """Return an entry of another source as it is without the person's later STOP."""
    traces = _traces_of(entry)
    return entry if traces.pop(KEYWORD, None) is None else _with_traces(entry, traces)


def _with_trace(entry: Unsubscribe, later: Unsubscribe) -> Unsubscribe:
    """Return an entry with the date of a later opt-out of the person by another source."""
    if later.source not in {KEYWORD, CALL} or later.source == entry.source:
        return entry
    traces = _traces_of(entry)
    newest = max(traces.get(later.source, ""), f"{later.created_at:%Y-%m-%d}")
    return _with_traces(entry, {**traces, later.source: newest})


def _traces_of(entry: Unsubscribe) -> dict[str, str]:
    """Return the date of each later opt-out that the evidence of an entry names, by source."""
    found = _TRACES.search(_own_evidence(entry) or "")
    parts = [] if found is None else found[0].removeprefix("; ").removeprefix("also ").split("; also ")
    return {source: on for source, _, on in (part.partition(", ") for part in parts)}


def _with_traces(entry: Unsubscribe, traces: dict[str, str]) -> Unsubscribe:
    own = _TRACES.sub("", _own_evidence(entry) or "")
    parts = [*([own] if own else []), *(f"also {source}, {on}" for source, on in traces.items())]
    return attrs.evolve(entry, evidence=_joined("; ".join(parts) or None, _claims_of(entry)))


def _is_of_imports_alone(entry: Unsubscribe) -> bool:
    return entry.source == IMPORT and _CLAIMS.match(entry.evidence or "") is not None


def _rank(entry: Unsubscribe) -> int:
    return _WEAKEST if _is_of_imports_alone(entry) else _STRENGTH.get(entry.source, _LASTING)


def _own_evidence(entry: Unsubscribe) -> str | None:
    """Return the evidence of an entry's own source, without the imports."""
    added = _ADDED.fullmatch(entry.evidence or "")
    return entry.evidence if added is None else added["own"]


def _joined(own: str | None, claims: dict[str, str]) -> str | None:
    """Return the evidence of a source with the imports that say the same."""
    if not any(claim.startswith(_IMPORT) for claim in claims):
        return own
    before = f"{own}; also " if own is not None else "also "
    return before + _evidence_of(claims, room=_MAX_LENGTH - len(before))


def _claims_of(entry: Unsubscribe) -> dict[str, str]:
    """Return the evidence of imports: all of the evidence, or the part after a source's own.

    The keys are `import ID`, or a source and its date, or `others`; the values are the file and row of an import.
    """
    text = entry.evidence or ""
    if not _is_of_imports_alone(entry):
        added = _ADDED.fullmatch(text)
        text = "" if added is None else added["imports"]
    found = _CLAIMS.match(text)
    if found is None:
        return {}
    claims = dict.fromkeys(found[1].split(_ALSO), "")
    last, *further = claims
    rest = text[found.end() :]
    # The oldest import first: the name of its file cannot hold the id of a later import.
    for claim in further:
        before, sign, after = rest.partition(f"; {claim}: ")
        if sign:
            claims[last] = before
            last, rest = claim, after
    claims[last] = rest
    return claims


def _evidence_of(claims: dict[str, str], *, room: int = _MAX_LENGTH) -> str:
    """Return the evidence with these claims, the imports first; if it is too long, the middle imports are left out."""
    imports = [claim for claim in claims if claim.startswith(_IMPORT)]
    further = [claim for claim in claims if not claim.startswith(_IMPORT) and claim != _OTHERS]
    are_left_out = _OTHERS in claims
    while True:
        first, *later = imports
        head = _ALSO.join([*imports, *further, *([_OTHERS] if are_left_out else [])])
        places = [claims[first], *(f"{claim}: {claims[claim]}" for claim in later)]
        evidence = f"{head}: {'; '.join(places)}"
        spare = imports[1:-1] or further
        if (len(imports) + len(further) <= _MAX_CLAIMS and len(evidence) <= room) or not spare:
            return evidence
        (imports if len(imports) > 2 else further).remove(spare[0])
        are_left_out = True


def _both_held(known: Unsubscribe, other: Unsubscribe) -> Unsubscribe:
    """Return the held entry with the evidence of both, the later one first; what is too long is cut at its end."""
    evidence = "; ".join(one.evidence for one in (other, known) if one.evidence is not None)
    if len(evidence) > _MAX_LENGTH:
        evidence = f"{evidence[: _MAX_LENGTH - 1]}…"
    return attrs.evolve(known, evidence=evidence or None, created_at=max(known.created_at, other.created_at))


def _with_held(known: Unsubscribe, other: Unsubscribe) -> Unsubscribe:
    """Return the opt-out of the two, for all channels; one of imports has the held entry among its claims."""
    entry, held = (other, known) if known.scope == HELD else (known, other)
    if entry.scope != "all":
        entry = attrs.evolve(entry, scope="all", created_at=other.created_at)
    claims = _claims_of(entry)
    kind = _NOT_A_WORD.sub(" ", held.source[:_MAX_SOURCE]).strip()
    if not _is_of_imports_alone(entry) or any(known.startswith(f"{kind} ") for known in claims):
        return entry
    return attrs.evolve(entry, evidence=_evidence_of({**claims, f"{kind} {held.created_at:%Y-%m-%d}": ""}))


def _with_imports(entry: Unsubscribe, other: Unsubscribe) -> str | None:
    """Return the evidence of an entry with the imports of another one for the same number."""
    claims, more = _claims_of(entry), _claims_of(other)
    if more.keys() <= claims.keys():
        return entry.evidence
    if _is_of_imports_alone(entry):
        return _evidence_of({**claims, **more})
    return _joined(_own_evidence(entry), {**claims, **more})


@attrs.frozen(kw_only=True)
class NewUnsubscribes(Checked):
    """Numbers to unsubscribe.

    Attributes:
        phone_numbers: In any notation.
        scope: The channels that are stopped.
        evidence: Free text on why and when; None if none.
    """

    phone_numbers: Sequence[str] = ruled(ListOf(Text(1, 64), 1, 1000))
    scope: UnsubscribeScope = "all"
    evidence: str | None = sized(0, 1000, default=None)


@attrs.frozen(kw_only=True)
class RegisterSalt:
    """The salt of the hashes in a workspace's register."""

    salt: str


@attrs.frozen(kw_only=True)
class UnsubscribeImport:
    """The result of an import into the register.

    Attributes:
        id: Names the import in the evidence of its entries, and to `undo_import`.
        added: Numbers written, those already registered included.
        known: Those of them that were registered already, or came before in the list.
        rejected: (row, content) of each invalid row and of the workspace's own numbers.
    """

    id: str
    added: int
    known: int
    rejected: Sequence[tuple[int, str]]


@attrs.frozen(kw_only=True)
class UnsubscribeUndo:
    """The result of taking an import back.

    Attributes:
        removed: Numbers taken off the register.
        kept: Numbers of the import that stay, because something else says too that their person opted out.
    """

    removed: int
    kept: int
