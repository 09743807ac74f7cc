"""Phone numbers: one E.164 text for each person's number, however it was written.

`phonenumbers` is loaded where it is used: its tables are large, and the common forms are read without them.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Set as AbstractSet
from typing import Final

import attrs

_MAX_INPUT_LENGTH: Final = 64
"""Characters that are looked at; no number with its punctuation and extension is longer."""

_DIALABLE: Final = re.compile(r"\+?[1-9][0-9]{6,14}")
_E164: Final = re.compile(r"\+[1-9][0-9]{6,14}")
_DIGITS: Final = re.compile(r"\+?[0-9]{1,20}")
_EXTENSION: Final = re.compile(r"[\s;,]*(?:extension|extn|ext|x|#)[.:=\s]*[0-9]{1,7}\s*", re.IGNORECASE | re.ASCII)

_PUNCTUATION: Final = frozenset(
    ".()[]/~"
    "\u00b7\u2027\u2219"  # middle dots
    "\u2212\u223c"  # minus and tilde of mathematics
    "\uff0e\uff08\uff09\uff3b\uff3d\uff0f\uff5e"  # the full-width forms of the first line
)
_PLUS_SIGNS: Final = frozenset("+\uff0b")
_SEPARATOR_CATEGORIES: Final = frozenset({"Zs", "Pd", "Cf"})
"""Spaces, dashes, and the invisible marks that come along when a number is copied from a document."""

_DROP_ASCII_SEPARATORS: Final = str.maketrans("", "", " \t\r\n-.()[]/~")

_NANP_E164: Final = re.compile(r"\+1[2-9][0-9]{9}")
_NANP_WITH_CODE: Final = re.compile(r"\+?(1[2-9][0-9]{9})")
_NANP_NATIONAL: Final = re.compile(r"[2-9][0-9]{9}")
_NANP_CODE: Final = 1

_MAX_PASSES: Final = 8


def normalise(raw: str, default_region: str | None) -> str | None:
    """Return the E.164 form of a number, or None when it is no possible number.

    A number with a plus sign is international. Any other is read as one of `default_region` where it is
    possible there, else as international digits (`14155550102`, `0044 20 …`). *Possible* decides, not
    *valid*: number ranges are opened faster than tables of them are installed. Extensions are dropped; letters
    make it no number. The answer is stable: normalising it again, under any region, gives the same.

    Args:
        raw: The number as somebody wrote it, of any length and content.
        default_region: Where numbers without a country code belong, as ISO 3166 alpha-2; a region that the
            numbering tables do not know counts as none.
    """
    if _NANP_E164.fullmatch(raw):
        return raw
    text = raw.translate(_DROP_ASCII_SEPARATORS) if len(raw) <= _MAX_INPUT_LENGTH else ""
    if (
        (match := _NANP_WITH_CODE.fullmatch(text)) is not None
        # Without the plus sign another region's reading comes first.
        and (text[0] == "+" or default_region is None or _country_code(default_region) == _NANP_CODE)
    ):
        return "+" + match[1]
    if default_region is not None and _NANP_NATIONAL.fullmatch(text) and _country_code(default_region) == _NANP_CODE:
        return "+1" + text
    if _E164.fullmatch(text) and _is_plain_international(text[1:]):
        return text
    return normalise_fully(raw, default_region)


def normalise_fully(raw: str, default_region: str | None) -> str | None:
    """Return what `normalise` returns, without its short cuts for common forms.

    This is the definition; the short cuts are proven against it.
    """
    number = _clean(raw)
    if number is None:
        return None
    readings: list[tuple[str, str | None]] = []
    if number[0] != "+":
        region = default_region.upper() if default_region is not None else None
        if region is not None and is_region(region):
            readings.append((number, region))
        # No E.164 number starts with 0, so that `00` can only be the usual prefix of an international call.
        number = "+" + number.removeprefix("00")
    readings.append((number, None))
    for text, region in readings:
        found = _parse(text, region)
        if found is not None:
            return _settle(found)
    return None


def canonical_phone(written: str, default_region: str | None) -> str | None:
    """Return the one text under which a number is contacted and stands on the register; None for no number.

    That is its E.164 form; numbering plans may lag behind, so that digits that have the form of E.164 are taken as
    they stand, and are the provider's to refuse. What is sent to and who opts out are both read by this one rule, so
    that every number that can be reached can opt out; and what it returns it returns again, under any region.

    Args:
        written: The number as somebody wrote it, or as a provider gives it.
        default_region: As in `normalise`.
    """
    phone = normalise(written, default_region)
    if phone is None and is_dialable(written):
        return "+" + written.removeprefix("+")
    return phone


def is_dialable(to: str) -> bool:
    r"""Return whether a text is what POST /calls accepts: `^\+?[1-9]\d{6,14}$`, ASCII digits, the whole text."""
    return _DIALABLE.fullmatch(to) is not None


def is_region(region: str) -> bool:
    """Return whether a text names a region in which numbers can be read, such as `US`."""
    return region in _regions()


def mask_phone(phone: str) -> str:
    """Return a number for logs: its length and its last two digits, `+*********02`.

    Anything that is too short to hide behind its last two digits is masked whole.
    """
    shown = phone[:_MAX_INPUT_LENGTH].strip()
    plus = "+" if shown.startswith("+") else ""
    rest = shown[len(plus) :]
    tail = rest[-2:]
    if len(rest) < len("123456") or not (tail.isascii() and tail.isdigit()):
        tail = ""
    return plus + "*" * (len(rest) - len(tail)) + tail


def _clean(raw: str) -> str | None:
    """Return ASCII digits, after a plus sign if there was one, or None when the text holds anything else."""
    text = raw.strip()
    if len(text) > _MAX_INPUT_LENGTH:
        return None
    if text[:4].lower() == "tel:":
        text = text[4:]
    kept: list[str] = []
    for position, character in enumerate(text):
        category = unicodedata.category(character)
        if category == "Nd":
            kept.append(str(unicodedata.decimal(character)))
        elif character in _PLUS_SIGNS and not kept:
            kept.append("+")
        elif not (character in _PUNCTUATION or category in _SEPARATOR_CATEGORIES or character in "\t\r\n"):
            if not _EXTENSION.fullmatch(text, position):
                return None
            break
    number = "".join(kept)
    return number if _DIGITS.fullmatch(number) else None


def _parse(text: str, region: str | None) -> str | None:
    """Return the E.164 form of one reading, or None when the number is not possible under it."""
    import phonenumbers

    try:
        number = phonenumbers.parse(text, region)
    except phonenumbers.NumberParseException:
        return None
    # `is_possible_number` would also let through numbers that work only within one area.
    if phonenumbers.is_possible_number_with_reason(number) != phonenumbers.ValidationResult.IS_POSSIBLE:
        return None
    formatted = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)
    return formatted if _E164.fullmatch(formatted) else None


def _settle(number: str) -> str | None:
    """Return the form that no longer changes when it is read again.

    Where numbers vary in length (Germany), one reading takes off one trunk prefix of several; two spellings of
    a number could then stay two persons.
    """
    for _ in range(_MAX_PASSES):
        again = _parse(number, None)
        if again is None or again == number:
            return again
        number = again
    return None


@functools.cache
def _regions() -> AbstractSet[str]:
    import phonenumbers

    return frozenset(phonenumbers.SUPPORTED_REGIONS)


@functools.cache
def _supported_country_code(region: str) -> int:
    import phonenumbers

    return phonenumbers.country_code_for_region(region)


def _country_code(region: str) -> int:
    """Return a region's country code, 0 when there is no such region."""
    region = region.upper()
    return _supported_country_code(region) if is_region(region) else 0


@attrs.frozen
class _Plan:
    """What decides about a number after one country code.

    Attributes:
        trunk_prefix: What is taken off, or rewritten, at the start of a national number.
        lengths: How many digits a possible national number has.
    """

    trunk_prefix: re.Pattern[str] | None
    lengths: frozenset[int]


@functools.cache
def _plan(country_code: int) -> _Plan | None:
    import phonenumbers

    if country_code not in phonenumbers.COUNTRY_CODE_TO_REGION_CODE:
        return None
    region = phonenumbers.region_code_for_country_code(country_code)
    metadata = phonenumbers.PhoneMetadata.metadata_for_region_or_calling_code(country_code, region)
    if metadata is None or metadata.general_desc is None:
        return None
    prefix = metadata.national_prefix_for_parsing
    return _Plan(
        trunk_prefix=re.compile(prefix) if prefix else None,
        lengths=frozenset(metadata.general_desc.possible_length),
    )


def _is_plain_international(digits: str) -> bool:
    """Return whether digits are a possible number that the slow path would leave as they are."""
    for width in (1, 2, 3):
        plan = _plan(int(digits[:width]))
        if plan is not None:
            national = digits[width:]
            untouched = plan.trunk_prefix is None or plan.trunk_prefix.match(national) is None
            return untouched and len(national) in plan.lengths
    return False


_OURS: Final = frozenset({"sms", "mms", "tel"})
"""Channels whose messages are answered by SMS; an address without a channel is of these."""

_OTHERS: Final = frozenset({"whatsapp", "rcs", "viber", "viber_service"})
"""Channels that know people by their phone numbers, too. Others (`messenger:…`) have digits that are no number."""

_ADDRESS: Final = re.compile(r"\s*(?P<channel>[A-Za-z_]{1,20}):(?P<rest>.*)", re.DOTALL)


@attrs.frozen
class InboundSender:
    """Who wrote a message.

    Attributes:
        phone: What the number is contacted at and stands on the register under (`phones.canonical_phone`); None where
            the address is no phone number, such as a short code or a name.
        channel: The channel that it came by, where that is another one than SMS; None for SMS.
    """

    phone: str | None
    channel: str | None


def parse_inbound_sender(address: str, default_region: str | None) -> InboundSender:
    """Return who wrote, read as the numbers are that are sent to.

    Args:
        address: As the carrier gives it: a number, or one after its channel, such as `whatsapp:+14155550102`
            (https://www.twilio.com/docs/messaging/channels).
        default_region: Where numbers without a country code belong; those of other channels always have theirs.
    """
    match = _ADDRESS.fullmatch(address)
    if match is None:
        return InboundSender(canonical_phone(address.strip(), default_region), None)
    channel, rest = match["channel"].lower(), match["rest"]
    if channel in _OURS:
        return InboundSender(canonical_phone(rest.strip(), default_region), None)
    if channel in _OTHERS:
        return InboundSender(canonical_phone("+" + rest.strip().removeprefix("+"), None), channel)
    return InboundSender(None, channel)
