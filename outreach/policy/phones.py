"""Phone numbers: one E.164 form for each number, however it was written.

`phonenumbers` is imported when needed, because its tables are large and the common forms do not need them.
"""

from __future__ import annotations

import functools
import hmac
import re
import unicodedata
from collections.abc import Set as AbstractSet
from hashlib import sha256
from typing import Final

import attrs

_MAX_INPUT_LENGTH: Final = 64
"""The longest possible number, with punctuation and extension."""

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
"""Spaces, dashes, and invisible marks that are copied along with a number."""

_DROP_ASCII_SEPARATORS: Final = str.maketrans("", "", " \t\r\n-.()[]/~")

_NANP_E164: Final = re.compile(r"\+1[2-9][0-9]{9}")
_NANP_WITH_CODE: Final = re.compile(r"\+?(1[2-9][0-9]{9})")
_NANP_NATIONAL: Final = re.compile(r"[2-9][0-9]{9}")
_NANP_CODE: Final = 1

_MAX_PASSES: Final = 8

PSEUDONYM_PREFIX: Final = "#"
"""The first character, which no number has."""

_PSEUDONYM_LENGTH: Final = 40


def normalise(raw: str, default_region: str | None) -> str | None:
    """Return the E.164 form of a number, or None if it is not possible.

    A number with a plus sign is international. Any other is read in `default_region` if possible there, else as
    international digits (`14155550102`, `0044 20 …`). *Possible* decides, not *valid*: number ranges open faster than
    tables are updated. Extensions are dropped; letters make it invalid. The result is stable in any region.

    Args:
        raw: The number in any notation, length and content.
        default_region: The ISO 3166 alpha-2 region of numbers without a country code; unknown regions count as None.
    """
    if _NANP_E164.fullmatch(raw):
        return raw
    text = raw.translate(_DROP_ASCII_SEPARATORS) if len(raw) <= _MAX_INPUT_LENGTH else ""
    if (
        (match := _NANP_WITH_CODE.fullmatch(text)) is not None
        # Without a plus sign the reading in another region comes first.
        and (text[0] == "+" or default_region is None or _country_code(default_region) == _NANP_CODE)
    ):
        return "+" + match[1]
    if default_region is not None and _NANP_NATIONAL.fullmatch(text) and _country_code(default_region) == _NANP_CODE:
        return "+1" + text
    if _E164.fullmatch(text) and _is_plain_international(text[1:]):
        return text
    return normalise_fully(raw, default_region)


def normalise_fully(raw: str, default_region: str | None) -> str | None:
    """Return what `normalise` returns, without its shortcuts, which are tested against this definition."""
    number = _clean(raw)
    if number is None:
        return None
    readings: list[tuple[str, str | None]] = []
    if number[0] != "+":
        region = default_region.upper() if default_region is not None else None
        if region is not None and is_region(region):
            readings.append((number, region))
        # No E.164 number starts with 0, so that `00` is the international prefix.
        number = "+" + number.removeprefix("00")
    readings.append((number, None))
    for text, region in readings:
        found = _parse(text, region)
        if found is not None:
            return _stable(found)
    return None


def canonical_phone(written: str, default_region: str | None) -> str | None:
    """Return the form in which a number is contacted and registered; None for no number.

    This is E.164; digits in the form of E.164 that the numbering tables do not know are kept for the provider to judge.
    Sending and opting out use this rule, so that every number that can be reached can opt out. The result is stable.
    """
    phone = normalise(written, default_region)
    if phone is None and is_dialable(written):
        return "+" + written.removeprefix("+")
    return phone


def is_dialable(to: str) -> bool:
    r"""Return whether a text is what POST /calls accepts: `^\+?[1-9]\d{6,14}$`, ASCII digits, the whole text."""
    return _DIALABLE.fullmatch(to) is not None


def is_region(region: str) -> bool:
    """Return whether a text names a region that numbers can be read in, such as `US`."""
    return region in _regions()


def mask_phone(phone: str) -> str:
    """Return a number for logs, `+*********02`: its length and last two digits; too short ones are masked whole."""
    shown = phone[:_MAX_INPUT_LENGTH].strip()
    plus = "+" if shown.startswith("+") else ""
    rest = shown[len(plus) :]
    tail = rest[-2:]
    if len(rest) < len("123456") or not (tail.isascii() and tail.isdigit()):
        tail = ""
    return plus + "*" * (len(rest) - len(tail)) + tail


def _clean(raw: str) -> str | None:
    """Return ASCII digits, after a plus sign if there was one, or None for any other content."""
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
    """Return the E.164 form of one reading, or None if the number is not possible."""
    import phonenumbers

    try:
        number = phonenumbers.parse(text, region)
    except phonenumbers.NumberParseException:
        return None
    # `is_possible_number` also accepts numbers that work only within one area.
    if phonenumbers.is_possible_number_with_reason(number) != phonenumbers.ValidationResult.IS_POSSIBLE:
        return None
    formatted = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)
    return formatted if _E164.fullmatch(formatted) else None


def _stable(number: str) -> str | None:
    """Return the form that reading again does not change.

    Where lengths vary (Germany), one reading removes only one of several trunk prefixes.
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
    """Return a region's country code; 0 for an unknown region."""
    region = region.upper()
    return _supported_country_code(region) if is_region(region) else 0


@attrs.frozen
class _NumberingPlan:
    """The numbering plan of a country code: the prefix removed or rewritten in national numbers, and their lengths."""

    trunk_prefix: re.Pattern[str] | None
    lengths: frozenset[int]


@functools.cache
def _numbering_plan(country_code: int) -> _NumberingPlan | None:
    import phonenumbers

    if country_code not in phonenumbers.COUNTRY_CODE_TO_REGION_CODE:
        return None
    region = phonenumbers.region_code_for_country_code(country_code)
    metadata = phonenumbers.PhoneMetadata.metadata_for_region_or_calling_code(country_code, region)
    if metadata is None or metadata.general_desc is None:
        return None
    prefix = metadata.national_prefix_for_parsing
    return _NumberingPlan(
        trunk_prefix=re.compile(prefix) if prefix else None, lengths=frozenset(metadata.general_desc.possible_length)
    )


def _is_plain_international(digits: str) -> bool:
    """Return whether digits are a possible number that `normalise_fully` would not change."""
    for width in (1, 2, 3):
        plan = _numbering_plan(int(digits[:width]))
        if plan is not None:
            national = digits[width:]
            unchanged = plan.trunk_prefix is None or plan.trunk_prefix.match(national) is None
            return unchanged and len(national) in plan.lengths
    return False


_SMS_CHANNELS: Final = frozenset({"sms", "mms", "tel"})
"""Channels whose messages are answered by SMS, as are addresses without a channel."""

_PHONE_CHANNELS: Final = frozenset({"whatsapp", "rcs", "viber", "viber_service"})
"""Other channels that use phone numbers; the digits of others still (`messenger:…`) are not numbers."""

_ADDRESS: Final = re.compile(r"\s*(?P<channel>[A-Za-z_]{1,20}):(?P<rest>.*)", re.DOTALL)


@attrs.frozen
class InboundSender:
    """The sender of a message.

    Attributes:
        phone: The number as `canonical_phone`; None for a short code or name.
        channel: The channel, if it is not SMS.
    """

    phone: str | None
    channel: str | None


def parse_inbound_sender(address: str, default_region: str | None) -> InboundSender:
    """Return the sender at an address of the carrier.

    The address is a number, or one after its channel, such as `whatsapp:+14155550102`
    (https://www.twilio.com/docs/messaging/channels). `default_region` is for SMS: other channels use country codes.
    """
    match = _ADDRESS.fullmatch(address)
    if match is None:
        return InboundSender(canonical_phone(address.strip(), default_region), None)
    channel, rest = match["channel"].lower(), match["rest"]
    if channel in _SMS_CHANNELS:
        return InboundSender(canonical_phone(rest.strip(), default_region), None)
    if channel in _PHONE_CHANNELS:
        return InboundSender(canonical_phone("+" + rest.strip().removeprefix("+"), None), channel)
    return InboundSender(None, channel)


def register_hash(salt: str, phone: str) -> str:
    """Return the name of a number on the register: the same for the same number, and only with the workspace's salt.

    Whoever has the database and tries all numbers finds it out; without the salt nobody does.
    """
    return PSEUDONYM_PREFIX + hmac.new(salt.encode(), phone.encode(), sha256).hexdigest()[:_PSEUDONYM_LENGTH]


def is_pseudonym(phone: str | None) -> bool:
    """Return whether this stands for the number of an erased person."""
    return phone is not None and phone.startswith(PSEUDONYM_PREFIX)


def is_erased(phone: str) -> bool:
    """Return whether the number of a request or a call was erased, with the person or with the campaign."""
    return not phone or is_pseudonym(phone)
