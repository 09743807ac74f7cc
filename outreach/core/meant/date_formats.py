"""Dates in the format codes of spreadsheets (`d. mmmm yyyy, h:mm`), and the dates that texts hold."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import Final, NamedTuple


class DateNames(NamedTuple):
    """A language's names of months and days, short and long; Monday is the first day."""

    months: tuple[str, ...]
    short_months: tuple[str, ...]
    days: tuple[str, ...]
    short_days: tuple[str, ...]


def _names(months: str, short_months: str, days: str, short_days: str) -> DateNames:
    return DateNames(*(tuple(names.split()) for names in (months, short_months, days, short_days)))


# As the CLDR writes them within a date, which is where a message has them.
DATE_NAMES: Final[Mapping[str, DateNames]] = {
    "en": _names(
        "January February March April May June July August September October November December",
        "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec",
        "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
        "Mon Tue Wed Thu Fri Sat Sun",
    ),
    "de": _names(
        "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
        "Jan Feb März Apr Mai Juni Juli Aug Sept Okt Nov Dez",
        "Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag",
        "Mo Di Mi Do Fr Sa So",
    ),
    "fr": _names(
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
        "janv févr mars avr mai juin juil août sept oct nov déc",
        "lundi mardi mercredi jeudi vendredi samedi dimanche",
        "lun mar mer jeu ven sam dim",
    ),
    "es": _names(
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
        "ene feb mar abr may jun jul ago sept oct nov dic",
        "lunes martes miércoles jueves viernes sábado domingo",
        "lun mar mié jue vie sáb dom",
    ),
    "it": _names(
        "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
        "gen feb mar apr mag giu lug ago set ott nov dic",
        "lunedì martedì mercoledì giovedì venerdì sabato domenica",
        "lun mar mer gio ven sab dom",
    ),
    "pt": _names(
        "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
        "jan fev mar abr mai jun jul ago set out nov dez",
        "segunda-feira terça-feira quarta-feira quinta-feira sexta-feira sábado domingo",
        "seg ter qua qui sex sáb dom",
    ),
    "nl": _names(
        "januari februari maart april mei juni juli augustus september oktober november december",
        "jan feb mrt apr mei jun jul aug sep okt nov dec",
        "maandag dinsdag woensdag donderdag vrijdag zaterdag zondag",
        "ma di wo do vr za zo",
    ),
    "sv": _names(
        "januari februari mars april maj juni juli augusti september oktober november december",
        "jan feb mars apr maj juni juli aug sep okt nov dec",
        "måndag tisdag onsdag torsdag fredag lördag söndag",
        "mån tis ons tors fre lör sön",
    ),
    "da": _names(
        "januar februar marts april maj juni juli august september oktober november december",
        "jan feb mar apr maj jun jul aug sep okt nov dec",
        "mandag tirsdag onsdag torsdag fredag lørdag søndag",
        "man tirs ons tors fre lør søn",
    ),
    "nb": _names(
        "januar februar mars april mai juni juli august september oktober november desember",
        "jan feb mars apr mai juni juli aug sep okt nov des",
        "mandag tirsdag onsdag torsdag fredag lørdag søndag",
        "man tir ons tor fre lør søn",
    ),
    "pl": _names(
        "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia",
        "sty lut mar kwi maj cze lip sie wrz paź lis gru",
        "poniedziałek wtorek środa czwartek piątek sobota niedziela",
        "pon wt śr czw pt sob niedz",
    ),
    "cs": _names(
        "ledna února března dubna května června července srpna září října listopadu prosince",
        "led úno bře dub kvě čvn čvc srp zář říj lis pro",
        "pondělí úterý středa čtvrtek pátek sobota neděle",
        "po út st čt pá so ne",
    ),
}
"""The languages in which a format can write the names of months and days."""

_LANGUAGE_NUMBERS: Final = {
    0x05: "cs", 0x06: "da", 0x07: "de", 0x09: "en", 0x0A: "es", 0x0C: "fr", 0x10: "it", 0x13: "nl", 0x14: "nb",
    0x15: "pl", 0x16: "pt", 0x1D: "sv",
}  # fmt: skip
_PRIMARY_LANGUAGE: Final = 0x3FF

_TOKEN: Final = re.compile(
    r'"(?P<quoted>[^"]*)"'
    r"|\\(?P<escaped>.)"
    r"|[_*]."
    r"|\[(?P<elapsed>h+|m+|s+)\]"
    r"|\[\$(?P<locale>[^\]]*)\]"
    r"|\[(?P<language>[a-z]{2})\]"
    r"|\[[^\]]*\]"
    r"|(?P<noon>AM/PM|A/P)"
    r"|(?P<fraction>[.,]0+)"
    r"|(?P<foreign>%-?[a-z])"
    r"|(?P<word>[^\W\d_]+)"
    r"|(?P<other>.)",
    re.IGNORECASE | re.DOTALL,
)
_FOREIGN: Final = {
    "%d": "dd", "%-d": "d", "%e": "d", "%m": "mm", "%-m": "m", "%B": "mmmm", "%b": "mmm", "%h": "mmm",
    "%Y": "yyyy", "%y": "yy", "%A": "dddd", "%a": "ddd", "%H": "hh", "%-H": "h", "%k": "h", "%I": "hh", "%-I": "h",
    "%l": "h", "%M": "mm", "%S": "ss", "%p": "AM/PM", "%P": "AM/PM",
    "%F": "yyyy-mm-dd", "%D": "mm/dd/yy", "%T": "hh:mm:ss", "%R": "hh:mm", "%%": "%",
}  # fmt: skip
"""The codes of other programs (strftime), as those of spreadsheets."""

_LOCAL: Final = re.compile(r"(?P<letter>[tja])(?P=letter)*|do", re.IGNORECASE)
"""The codes of spreadsheets in other languages (`TT.MM.JJJJ`), and of programs (`h:mm a`, `mmmm do`)."""

_OWN_LETTERS: Final = {"y": "y", "m": "m", "d": "d", "h": "h", "s": "s", "t": "d", "g": "d", "a": "y"}
_SINGLE_QUOTED: Final = re.compile(r"'([^']*)'")
_FOREIGN_CODE: Final = re.compile(r"%(?:%|-?[A-Za-z])")
_FOREIGN_TOKEN: Final = re.compile(r"(?P<code>%(?:%|-?[A-Za-z]))|(?P<word>[^\W\d_]+)|\[[^\]]*\]|\"[^\"]*\"")
_QUOTES: Final = "\"'\u201c\u201d\u201e\u2018\u2019 "
_RUNS: Final = re.compile(r"y+|m+|d+|h+|s+|t", re.IGNORECASE)
_OF_RUNS: Final = re.compile(r"(?:y+|m+|d+|h+|s+|(?<=d)t(?=h))+", re.IGNORECASE)
_ERAS: Final = re.compile(r"[bge]+", re.IGNORECASE)
_OF_TIME: Final = frozenset({"h", "minute", "s", "noon", "fraction", "elapsed"})
_NOON: Final = 12
_MONTH_NAME: Final = 3
_MONTH_INITIAL: Final = 5
_YEAR_DIGITS: Final = 2


class _Part(NamedTuple):
    """A part of a format: a text, or what is written of a date."""

    kind: str
    text: str


class DateFormat(NamedTuple):
    """A format code that has been read.

    Attributes:
        parts: What it writes, in order.
        language: The language of its names.
    """

    parts: tuple[_Part, ...]
    language: str

    @property
    def is_of_time(self) -> bool:
        """Whether it writes nothing of the day, so that a time alone is enough."""
        return not any(part.kind in {"y", "m", "d"} for part in self.parts)

    @property
    def has_time(self) -> bool:
        """Whether it writes something of the time of day."""
        return any(part.kind in _OF_TIME for part in self.parts)

    def write(self, moment: datetime, elapsed: timedelta | None = None) -> str:
        """Return a date as the format writes it.

        Args:
            moment: The date.
            elapsed: What `[h]`, `[m]` and `[s]` count; None for the time of the day.
        """
        kinds = {part.kind for part in self.parts}
        if "fraction" not in kinds:
            moment = _to_second(moment)
        passed = timedelta(hours=moment.hour, minutes=moment.minute, seconds=moment.second)
        passed = passed if elapsed is None else elapsed
        names = DATE_NAMES[self.language]
        return "".join(_write(part, moment, passed, names, noon="noon" in kinds) for part in self.parts)


# A text has few formats, and each is asked for once a contact.
@functools.lru_cache(maxsize=256)
def date_format(code: str) -> DateFormat | None:
    """Return a format by its code; None if it has no part of a date, or one that is not understood.

    The codes are those of spreadsheets: `yyyy yy mmmm mmm mm m dddd ddd dd d hh h mm m ss s AM/PM [h]`; `m` is a minute
    after an hour or before a second. Texts stand in quotes; other letters and signs stand for themselves. `[de]` or
    `[$-407]` chooses the language of names.
    """
    parts: list[_Part] = []
    language = "en"
    for found in _TOKEN.finditer(code):
        kind = found.lastgroup
        text = found[kind] if kind is not None else ""
        if kind == "locale":
            symbol, _, locale = text.partition("-")
            chosen = _language_of(locale) if locale else language
            if chosen is None:
                return None
            language = chosen
            parts.append(_Part("text", symbol))
        elif kind == "language":
            if text.lower() not in DATE_NAMES:
                return None
            language = text.lower()
        elif kind == "word":
            if not _OF_RUNS.fullmatch(text):
                if _ERAS.fullmatch(text):
                    return None
                parts.append(_Part("text", text))
                continue
            runs = (run[0] for run in _RUNS.finditer(text))
            parts += [_Part("text" if run in {"T", "t"} else run[0].lower(), run) for run in runs]
        elif kind == "foreign":
            return None
        elif kind in {"elapsed", "noon", "fraction"}:
            parts.append(_Part(kind, text))
        elif kind is not None:
            parts.append(_Part("text", text))
    if all(part.kind == "text" for part in parts):
        return None
    return DateFormat(tuple(_with_minutes(parts)), language)


def text_like_a_code(code: str) -> str | None:
    """Return the first text of a format that is a code, or stands in quotes, in other languages and programs."""
    tokens = list(_TOKEN.finditer(code))
    if sum(one["other"] == "'" for one in tokens) > 1:
        return "'"
    return next((one["word"] for one in tokens if one["word"] and _LOCAL.fullmatch(one["word"])), None)


def format_meant(code: str) -> str | None:
    """Return the code that a format in quotes, or one of another language or program, stands for; None if it is none.

    Those are `TT.MM.JJJJ`, `jj/mm/aaaa`, `h:mm a` and `%d.%m.`.
    """
    bare = code.strip(_QUOTES)
    if _FOREIGN_CODE.search(bare) is None:
        bare = _translated(bare)
        return bare if bare != code and date_format(bare) is not None else None
    found = [one["code"] for one in _FOREIGN_TOKEN.finditer(bare) if one["code"]]
    if not _FOREIGN.keys() >= set(found):
        return None
    # Texts of letters stand in quotes here.
    written = _FOREIGN_TOKEN.sub(
        lambda one: _FOREIGN[one["code"]] if one["code"] else f'"{one[0]}"' if one["word"] else one[0], bare
    )
    wanted = date_format(written)
    minutes = 0 if wanted is None else sum(part.kind == "minute" for part in wanted.parts)
    # A minute by itself would be read as a month.
    return None if wanted is None or minutes != sum(one in {"%M", "%T", "%R"} for one in found) else written


def _translated(code: str) -> str:
    """Return a format whose letters are those of another language, or whose texts stand in single quotes."""
    code = code if '"' in code else _SINGLE_QUOTED.sub(r'"\1"', code)
    initials = {one["word"][0].lower() for one in _TOKEN.finditer(code) if one["word"]}

    def translate(found: re.Match[str]) -> str:
        word = (found["word"] or "").lower()
        if word in {"a", "do"}:
            return "AM/PM" if word == "a" else "d"
        if len(set(word)) != 1 or word == "g":
            return found[0]
        # A year in German and Dutch, a day in French.
        is_year = "a" not in initials and (len(word) > _MONTH_NAME or not initials.isdisjoint("td"))
        own = {**_OWN_LETTERS, "j": "y" if is_year else "d"}.get(word[0])
        return found[0] if own is None else own * len(word)

    return _TOKEN.sub(translate, code)


def _language_of(locale: str) -> str | None:
    """Return the language of a locale such as `407` or `de-DE`; None if there are no names in it."""
    if re.fullmatch(r"[0-9a-f]+", locale, re.IGNORECASE):
        number = int(locale, 16)
        # F800 and F400 are the long date and the time of the computer that shows them.
        return "en" if number in {0xF800, 0xF400} else _LANGUAGE_NUMBERS.get(number & _PRIMARY_LANGUAGE)
    language = locale[:2].lower()
    return language if language in DATE_NAMES else None


def _with_minutes(parts: list[_Part]) -> list[_Part]:
    """Return the parts with `m` as a minute where it stands after an hour or before a second."""
    places = [index for index, part in enumerate(parts) if part.kind not in {"text", "fraction", "noon"}]
    minutes = set()
    for earlier, later in pairwise(places):
        first, second = parts[earlier], parts[later]
        if second.kind == "m" and first.text[0] in "hH" and len(second.text) < _MONTH_NAME:
            minutes.add(later)
        if first.kind == "m" and second.text[0] in "sS" and len(first.text) < _MONTH_NAME:
            minutes.add(earlier)
    return [_Part("minute", part.text) if index in minutes else part for index, part in enumerate(parts)]


def _to_second(moment: datetime) -> datetime:
    """Return a time rounded to a second, as a fraction of a day may be a little less than it stands for."""
    try:
        rounded = moment + timedelta(microseconds=500_000)
    except OverflowError:
        rounded = moment
    return rounded.replace(microsecond=0)


def _write(part: _Part, moment: datetime, passed: timedelta, names: DateNames, *, noon: bool) -> str:
    size = len(part.text)
    match part.kind:
        case "y":
            return f"{moment.year % 100:02d}" if size <= _YEAR_DIGITS else f"{moment.year:04d}"
        case "m":
            return _named(moment.month, size, names.months[moment.month - 1], names.short_months[moment.month - 1])
        case "d":
            day = moment.weekday()
            return _named(moment.day, size, names.days[day], names.short_days[day], initial=False)
        case "h":
            hour = (moment.hour - 1) % _NOON + 1 if noon else moment.hour
            return f"{hour:02d}" if size > 1 else str(hour)
        case "minute":
            return f"{moment.minute:02d}" if size > 1 else str(moment.minute)
        case "s":
            return f"{moment.second:02d}" if size > 1 else str(moment.second)
        case "fraction":
            return part.text[0] + f"{moment.microsecond:06d}"[: size - 1]
        case "noon":
            words = part.text.split("/")
            return words[moment.hour >= _NOON]
        case "elapsed":
            seconds = {"h": 3600, "m": 60, "s": 1}[part.text[0].lower()]
            return str(int(passed.total_seconds() // seconds)).zfill(size)
        case _:
            return part.text


def _named(number: int, size: int, long: str, short: str, *, initial: bool = True) -> str:
    if size < _MONTH_NAME:
        return f"{number:02d}" if size > 1 else str(number)
    if size == _MONTH_NAME:
        return short
    return long[0] if initial and size == _MONTH_INITIAL else long


_CLOCK: Final = (
    r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.,][0-9]+)?)?(?:\s*(?P<noon>[ap])\.?m\.?)?"
)
_TIME: Final = rf"(?:[T,\s]+{_CLOCK}(?:\s*(?:Z|UTC|[+-][0-9]{{2}}:?[0-9]{{2}}))?)?"
_TIME_ALONE: Final = re.compile(_CLOCK, re.IGNORECASE)
_DAY_ZERO: Final = {"year": "1900", "month": "1", "day": "1"}
_DATES: Final = tuple(
    re.compile(pattern + _TIME, re.IGNORECASE)
    for pattern in (
        r"(?P<year>[0-9]{4})(?P<sign>[-/.])(?P<month>[0-9]{1,2})(?P=sign)(?P<day>[0-9]{1,2})",
        r"(?P<day>[0-9]{1,2})\.\s?(?P<month>[0-9]{1,2})\.\s?(?P<year>[0-9]{4})",
        r"(?P<first>[0-9]{1,2})(?P<sign>[-/])(?P<other>[0-9]{1,2})(?P=sign)(?P<year>[0-9]{4})",
        r"(?:[^\W\d_]+\.?,?\s+)?(?P<day>[0-9]{1,2})(?:\.|st|nd|rd|th)?[\s-]+(?:de\s+)?(?P<name>[^\W\d_]{3,})\.?,?[\s-]+"
        r"(?:de\s+)?(?P<year>[0-9]{4})",
        r"(?:[^\W\d_]+\.?,?\s+)?(?P<name>[^\W\d_]{3,})\.?\s+(?P<day>[0-9]{1,2})(?:st|nd|rd|th)?,?\s+(?P<year>[0-9]{4})",
    )
)
_MOST_LETTERS: Final = 80
_MONTHS: Final = {
    name.casefold(): index
    for names in DATE_NAMES.values()
    for months in (names.short_months, names.months)
    for index, name in enumerate(months, start=1)
}
_MONTHS_IN_A_YEAR: Final = 12


def read_date(text: str, *, with_time: bool = False) -> datetime | None:
    """Return the date and time that a text holds, without its zone; None if it is none, or may be two.

    `2026-12-08`, `8.12.2026`, `8 December 2026` and `Dec 8, 2026` are dates, with and without a time. `12/8/2026` may
    be a day in August or in December; `12/18/2026` is one alone.

    Args:
        text: The text.
        with_time: Whether a date without a time of day is none.
    """
    stripped = text.strip()
    if len(stripped) > _MOST_LETTERS:
        return None
    for pattern in _DATES:
        found = pattern.fullmatch(stripped)
        if found is not None:
            return None if with_time and found["hour"] is None else _moment(found.groupdict())
    return None


def read_time(text: str) -> datetime | None:
    """Return the time that a text holds, `14:05` or `2:05 PM`, on some day; None if it is none."""
    found = _TIME_ALONE.fullmatch(text.strip()) if len(text) <= _MOST_LETTERS else None
    return None if found is None else _moment(_DAY_ZERO | found.groupdict())


def _moment(parts: Mapping[str, str | None]) -> datetime | None:
    if parts.get("first") is not None:
        first, other = int(parts["first"] or 0), int(parts["other"] or 0)
        if first != other and max(first, other) <= _MONTHS_IN_A_YEAR:
            return None
        month, day = min(first, other), max(first, other)
    else:
        name = parts.get("name")
        month = int(parts["month"] or 0) if name is None else _MONTHS.get(name.casefold(), 0)
        day = int(parts["day"] or 0)
    hour, minute, second = (int(parts[name] or 0) for name in ("hour", "minute", "second"))
    if parts["noon"] is not None:
        if not 1 <= hour <= _NOON:
            return None
        hour = hour % _NOON + (_NOON if parts["noon"] in {"p", "P"} else 0)
    try:
        # Dates of spreadsheets have no zone, and one that is written is not converted.
        return datetime.combine(date(int(parts["year"] or 0), month, day), datetime.min.time()).replace(
            hour=hour, minute=minute, second=second
        )
    except ValueError:
        return None
