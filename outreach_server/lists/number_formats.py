"""Values of spreadsheet cells as their number formats show them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Final, NamedTuple

from outreach.server_support import DateFormat, date_format

Value = str | float | bool | date | time | timedelta
"""A cell's value as openpyxl reads it."""

Shown = Callable[[Value], str]

_MIDNIGHT: Final = time()
_DAY_ZERO: Final = date(1899, 12, 30)
_EXACT: Final = 10**15
_MAX_SECTIONS: Final = 4

_TOKEN: Final = re.compile(
    r'"(?P<quoted>[^"]*)"'
    r"|\\(?P<escaped>.)"
    r"|_."
    r"|\*."
    r"|\[\$(?P<currency>[^\]]*)\]"
    r"|\[(?P<condition>(?:<=|>=|<>|<|>|=)-?[0-9]+(?:\.[0-9]+)?)\]"
    r"|\[(?:Black|Blue|Cyan|Green|Magenta|Red|White|Yellow|Color ?[0-9]+|Schwarz|Blau|Rot|Gr\u00fcn)\]"
    r"|(?P<general>General|Standard)"
    r"|(?P<exponent>E[+-]0+)"
    r"|(?P<digit>[0#?])"
    r"|(?P<point>\.)"
    r"|(?P<comma>,)"
    r"|(?P<percent>%)"
    r"|(?P<text>@)"
    r"|(?P<literal>[-+/():!^&'~{}<>= $\u20ac\u00a3\u00a5\u20b9\u00a0\u202f\u2009])"
    r"|(?P<unknown>.)",
    re.IGNORECASE | re.DOTALL,
)
_SECTION: Final = re.compile(r'(?:"[^"]*"|\\.|\[[^\]]*\]|[^;])*')
_DATE_LETTERS: Final = re.compile(r'"[^"]*"|\\.|[_*].|\[(?!h+\]|m+\]|s+\])[^\]]*\]|General', re.IGNORECASE)
_CODE_IN_OPENPYXL: Final = '_("$"* #,##0.00_)_("$"* \\(#,##0.00\\)_("$"* "-"??_)_(@_)'
_ACCOUNTING: Final = '_("$"* #,##0.00_);_("$"* \\(#,##0.00\\);_("$"* "-"??_);_(@_)'
"""Format 44, which openpyxl writes without the signs between its sections."""

_SEPARATORS: Final = {
    # Decimal sign and thousands, by the primary language of a currency's locale.
    0x07: (",", "."), 0x0A: (",", "."), 0x10: (",", "."), 0x13: (",", "."), 0x16: (",", "."), 0x06: (",", "."),
    0x1F: (",", "."), 0x21: (",", "."), 0x08: (",", "."), 0x0C: (",", "\u00a0"), 0x1D: (",", "\u00a0"),
    0x14: (",", "\u00a0"), 0x0B: (",", "\u00a0"), 0x15: (",", "\u00a0"), 0x05: (",", "\u00a0"), 0x19: (",", "\u00a0"),
}  # fmt: skip
_OF_LOCALES: Final = {0x0807: (".", "\u2019"), 0x080A: (".", ",")}
"""Switzerland and Mexico write otherwise than others of their languages."""

_PRIMARY_LANGUAGE: Final = 0x3FF


class _Piece(NamedTuple):
    kind: str
    text: str


class _Section(NamedTuple):
    """A part of a format, for some numbers or for texts."""

    pieces: tuple[_Piece, ...]
    condition: str | None
    separators: tuple[str, str]

    def has(self, kind: str) -> bool:
        """Return whether it has a piece of a kind."""
        return any(piece.kind == kind for piece in self.pieces)


def plain_text(value: Value) -> str:
    """Return a value without a format; a whole number has no decimals, a date is written as ISO 8601."""
    match value:
        case str():
            return value
        case bool():
            return "TRUE" if value else "FALSE"
        case float() if value.is_integer() and abs(value) < _EXACT:
            return str(int(value))
        case float():
            return f"{value:.15g}"
        case datetime() if value.time() == _MIDNIGHT:
            return value.date().isoformat()
        case datetime():
            return value.isoformat(" ", "seconds" if value.second else "minutes")
        case date() | time():
            return value.isoformat()
        case _:
            return str(value)


def shown_by(code: str | None) -> Shown | None:
    """Return what shows values by a format code; None if the code is not understood."""
    if code is None or code.strip().lower() in {"", "general", "standard", "@"}:
        return plain_text
    code = _ACCOUNTING if code == _CODE_IN_OPENPYXL else code
    parts = _sections(code)
    if len(parts) > _MAX_SECTIONS:
        return None
    dates = _date_format(parts[0])
    if dates is not None:
        return lambda value: _shown_date(value, dates.write)
    sections = [_section(part) for part in parts]
    known = [section for section in sections if section is not None]
    if len(known) < len(sections):
        return None
    return lambda value: _shown(value, known)


def moment_text(value: date | time, code: str | None) -> str:
    """Return a date as ISO 8601, with its time of day if that is not midnight, or if the format shows it."""
    if isinstance(value, datetime) and value.time() == _MIDNIGHT and code is not None:
        shown = _date_format(_sections(code)[0])
        if shown is not None and shown.has_time:
            return value.isoformat(" ", "minutes")
    return plain_text(value)


def _date_format(section: str) -> DateFormat | None:
    return date_format(section) if re.search("[dmhys]", _DATE_LETTERS.sub("", section), re.IGNORECASE) else None


def _sections(code: str) -> list[str]:
    found, at = [], 0
    while at <= len(code):
        match = _SECTION.match(code, at)
        end = match.end() if match is not None else len(code)
        found.append(code[at:end])
        at = end + 1
    return found


def _section(code: str) -> _Section | None:
    """Return a section of a format for numbers and texts; None if it has what is not understood, such as a fraction."""
    pieces: list[_Piece] = []
    condition, separators = None, (".", ",")
    for found in _TOKEN.finditer(code):
        kind = found.lastgroup
        text = found[kind] if kind is not None else ""
        match kind:
            case None:
                continue
            case "unknown":
                return None
            case "condition":
                condition = text
            case "currency":
                symbol, _, locale = text.partition("-")
                separators = _separators(locale) or separators
                pieces.append(_Piece("literal", symbol))
            case "quoted" | "escaped" | "literal":
                pieces.append(_Piece("literal", text))
            case _:
                pieces.append(_Piece(kind, text))
    kinds = [piece.kind for piece in pieces]
    fraction = any(
        piece.text == "/" and "digit" in kinds[:at] and "digit" in kinds[at:] for at, piece in enumerate(pieces)
    )
    engineering = "exponent" in kinds and _whole_places(kinds) > 1
    if fraction or engineering or kinds.count("point") > 1:
        return None
    return _Section(tuple(pieces), condition, separators)


def _whole_places(kinds: Sequence[str]) -> int:
    end = kinds.index("point") if "point" in kinds else kinds.index("exponent")
    return kinds[:end].count("digit")


def _separators(locale: str) -> tuple[str, str] | None:
    if not re.fullmatch(r"[0-9a-fA-F]+", locale):
        return None
    number = int(locale, 16) & 0xFFFF
    return _OF_LOCALES.get(number) or _SEPARATORS.get(number & _PRIMARY_LANGUAGE)


def _shown_date(value: Value, write: Callable[[datetime, timedelta | None], str]) -> str:
    match value:
        case datetime():
            return write(value, None)
        case date():
            return write(datetime.combine(value, _MIDNIGHT), None)
        case time():
            return write(datetime.combine(_DAY_ZERO, value), None)
        case timedelta():
            return write(datetime.combine(_DAY_ZERO, _MIDNIGHT) + value % timedelta(days=1), value)
        case _:
            return plain_text(value)


def _shown(value: Value, sections: Sequence[_Section]) -> str:
    if isinstance(value, str):
        last = sections[-1]
        if last.has("text") and not last.has("digit"):
            return "".join(value if piece.kind == "text" else piece.text for piece in last.pieces)
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return plain_text(value)
    numbers = [one for one in sections if one.has("digit") or not one.has("text")]
    if not numbers:
        return plain_text(value)
    section, is_absolute = _section_for(value, numbers)
    text = _number(Decimal(repr(value)), section)
    negative = value < 0 and not is_absolute and any(digit in text for digit in "123456789")
    return f"-{text}".strip() if negative else text.strip()


def _section_for(value: float, sections: Sequence[_Section]) -> tuple[_Section, bool]:
    """Return the section for a number, and whether it writes the sign itself."""
    if any(one.condition is not None for one in sections):
        for one in sections:
            if one.condition is None or _holds(one.condition, value):
                return one, False
        return sections[-1], False
    if value < 0 and len(sections) > 1:
        return sections[1], True
    if value == 0 and len(sections) > 2:
        return sections[2], True
    return sections[0], False


def _holds(condition: str, value: float) -> bool:
    sign = condition.rstrip("-0123456789.")
    bound = float(condition.removeprefix(sign))
    return {
        "<": value < bound, "<=": value <= bound, ">": value > bound, ">=": value >= bound, "=": value == bound,
        "<>": value != bound,
    }[sign]  # fmt: skip


def _number(value: Decimal, section: _Section) -> str:
    pieces = section.pieces
    kinds = [piece.kind for piece in pieces]
    value = abs(value)
    if "digit" not in kinds:
        return "".join(plain_text(float(value)) if one.kind == "general" else one.text for one in pieces)
    if value >= _EXACT:
        # A spreadsheet keeps no more digits either.
        return plain_text(float(value))
    value *= 100 ** kinds.count("percent")
    if "exponent" in kinds:
        return _scientific(value, section)
    first, last = kinds.index("digit"), len(kinds) - 1 - kinds[::-1].index("digit")
    point = kinds.index("point") if "point" in kinds else len(kinds)
    whole_end = min(point, last + 1)
    # Commas behind the last place of the whole part divide by thousands, those within group it.
    places = [at for at in range(first, whole_end) if kinds[at] == "digit"]
    last_place = places[-1] if places else first
    scale = sum(_commas(kinds, at) for at in {last_place, last})
    grouped = "comma" in kinds[first:last_place]
    value /= 1000**scale
    fraction_places = [at for at in range(point, len(kinds)) if kinds[at] == "digit"]
    rounded = value.quantize(Decimal(1).scaleb(-len(fraction_places)), ROUND_HALF_UP)
    digits, _, fraction = f"{rounded:f}".partition(".")
    whole = _whole_part(digits, [(at, pieces[at].text) for at in places], section.separators[1] if grouped else "")
    decimals = _decimals(fraction, [(at, pieces[at].text) for at in fraction_places])
    written = {**whole, **decimals}
    out = []
    for at, piece in enumerate(pieces):
        match piece.kind:
            case "digit":
                out.append(written.get(at, ""))
            case "point":
                out.append(("" if places else digits.strip("0")) + section.separators[0])
            case "comma":
                continue
            case _:
                out.append(piece.text)
    return "".join(out)


def _commas(kinds: Sequence[str], at: int) -> int:
    """Return how many commas follow a place."""
    return next((count for count, kind in enumerate(kinds[at + 1 :]) if kind != "comma"), len(kinds) - at - 1)


def _whole_part(digits: str, places: Sequence[tuple[int, str]], separator: str) -> dict[int, str]:
    """Return what stands at each place of the whole part; the first place has all digits that are left."""
    digits = digits.lstrip("0")
    written: dict[int, str] = {}
    for index, (at, place) in enumerate(reversed(places)):
        is_first = index == len(places) - 1
        taken = digits if is_first else digits[-1:]
        digits = "" if is_first else digits[:-1]
        if not taken:
            taken = {"0": "0", "?": " "}.get(place, "")
        written[at] = _grouped(taken, index, separator)
    return written


def _grouped(digits: str, behind: int, separator: str) -> str:
    """Return digits with separators of thousands, where so many digits stand behind them."""
    out = ""
    for offset, digit in enumerate(reversed(digits)):
        at = behind + offset
        out = digit + (separator if at and at % 3 == 0 and digit.isdigit() else "") + out
    return out


def _decimals(fraction: str, places: Sequence[tuple[int, str]]) -> dict[int, str]:
    written: dict[int, str] = {}
    for index in range(len(places) - 1, -1, -1):
        at, place = places[index]
        digit = fraction[index]
        trailing = digit == "0" and not any(text.strip() for text in written.values())
        written[at] = {"#": "", "?": " "}.get(place, digit) if trailing else digit
    return written


def _scientific(value: Decimal, section: _Section) -> str:
    kinds = [piece.kind for piece in section.pieces]
    at = kinds.index("exponent")
    decimals = kinds[kinds.index("point") : at].count("digit") if "point" in kinds[:at] else 0
    mantissa, _, exponent = f"{value:.{decimals}E}".partition("E")
    sign, digits = exponent[0], exponent[1:].lstrip("0")
    code = section.pieces[at].text
    shown_sign = "-" if sign == "-" else "+" if code[1] == "+" else ""
    written = mantissa.replace(".", section.separators[0]) + code[0] + shown_sign + digits.zfill(len(code) - 2)
    places = [index for index, kind in enumerate(kinds) if kind in {"digit", "point", "comma", "exponent"}]
    before = "".join(piece.text for piece in section.pieces[: places[0]])
    return before + written + "".join(piece.text for piece in section.pieces[places[-1] + 1 :])
