"""Phone numbers: one E.164 form for each, the forms that are stored, sets of people, and what messages are sent from.

`phonenumbers` is imported when needed, because its tables are large and the common forms do not need them.
"""

from __future__ import annotations

import hmac
import re
import unicodedata
from array import array
from collections.abc import Mapping
from datetime import timedelta
from hashlib import sha256
from types import MappingProxyType
from typing import Final

import attrs

from outreach.models.call import DIALABLE
from outreach.models.fields import UUID
from outreach.rules import numbering
from outreach.rules.numbering import E164, NANP_CODE, former_readings, person_key, spellings
from outreach.rules.whole_numbers import LOST_DIGITS, is_scientific, written_out

_MAX_INPUT_LENGTH: Final = 64
"""The longest possible number, with punctuation and extension."""

_DIGITS: Final = re.compile(r"\+?[0-9]{1,20}")
_EXTENSION: Final = re.compile(r"[\s;,]*(?:extension|extn|ext|x|#)[.:=\s]*[0-9]{1,7}\Z", re.IGNORECASE | re.ASCII)

_PUNCTUATION: Final = frozenset(
    ".()[]/~"
    "\u00b7\u2027\u2219"  # middle dots
    "\u2212\u223c"  # minus and tilde of mathematics
    "\uff08\uff09\uff3b\uff3d\uff0f\uff5e"  # full-width forms
)
_FULL_WIDTH: Final = {"\uff0b": "+", "\uff0c": ",", "\uff0e": "."}
_SEPARATOR_CATEGORIES: Final = frozenset({"Zs", "Pd"})
"""Spaces and dashes."""

_BETWEEN_NUMBERS: Final = re.compile(r"[/\uff0f\\|;,&\r\n]|[^\W\d_]+|(?<=[0-9\s])\+")
"""Separators of two numbers in one text; a slash also stands behind an area code."""

_OPTIONAL_ZERO: Final = re.compile(r"\A\s*((?:\+|00)\s*[1-9][0-9]{0,2}[\s.-]*)[(\[]\s*0\s*[)\]]")
"""A zero in brackets behind a country code, as many write it also where numbers have none: `+48 (0)512 345 678`."""

_SPACE: Final = re.compile(r"\s+")
_BEFORE_A_ZERO: Final = re.compile(r"(?<=[0-9])[^0-9+]+(?=0[0-9])")
_DIGIT_GROUP: Final = re.compile(r"[0-9]+")
_SHORTEST_OF_TWO: Final = 6
"""The digits of the shortest of two numbers that stand side by side, with its zero."""

_SHORTEST_AREA_CODE: Final = 3
"""Its digits with the zero, where it is not that of the number before: a shorter group may be a part of one number."""
_ANY_DIGIT: Final = re.compile(r"\d")
_SHORTEST: Final = 7
"""The digits of the shortest text that counts as a number where no region says which are possible."""

_DROP_ASCII_SEPARATORS: Final = str.maketrans("", "", " \t-.()[]~")

_NANP_WITH_PLUS: Final = re.compile(r"\+1[2-9][0-9]{9}")
_NANP_WITHOUT_PLUS: Final = re.compile(r"1?([2-9][0-9]{2}[2-9][0-9]{6})")
"""A North American number, whose area code and exchange begin with 2 to 9."""

PSEUDONYM_PREFIX: Final = "#"
"""The first character, which no number has."""

_PSEUDONYM_LENGTH: Final = 40

CALLING_CODE: Final = "calling_code"
"""The correction of a number that was written with the calling code of its region and without a plus sign."""

TRUNK_PREFIX: Final = "trunk_prefix"
"""The correction of a mobile number without its trunk prefix that begins like a calling code."""

OWN_NUMBER: Final = "is a number of this workspace itself"
"""The problem of a number on an opt-out list that the workspace sends from."""

SEVERAL_NUMBERS: Final = "has several numbers: leave one of them"
"""The problem of a text with more than one number."""


@attrs.frozen
class NumberReading:
    """The reading of a text: a number, or the problem with it.

    Attributes:
        phone: The number in E.164; None if the text was refused.
        correction: `CALLING_CODE` if the calling code was read without a plus sign, `TRUNK_PREFIX` if digits that would
            be a number behind a plus sign were read as a local number; else None.
        problem: Why the text was refused, as the end of a sentence that begins with the text; None if it was not.
    """

    phone: str | None
    correction: str | None = None
    problem: str | None = None

    def __attrs_post_init__(self) -> None:
        if (self.phone is None) == (self.problem is None):
            raise ValueError("A reading has a number or a problem, and not both.")


def normalise(raw: str, default_region: str | None) -> str | None:
    """Return the E.164 form of a number as `read_number` reads it, or None if that refuses it.

    Args:
        raw: The number in any notation, length and content.
        default_region: The ISO 3166 alpha-2 region of numbers without a country code; unknown regions count as None.
    """
    if _NANP_WITH_PLUS.fullmatch(raw):
        return raw
    text = written_out(raw.strip()).translate(_DROP_ASCII_SEPARATORS) if len(raw) <= _MAX_INPUT_LENGTH else ""
    if text[:1] == "+":
        may_be_two = len(text) > 2 * _SHORTEST_OF_TWO and _BEFORE_A_ZERO.search(raw)
        if (
            not may_be_two
            and not _OPTIONAL_ZERO.match(raw)
            and E164.fullmatch(text)
            and numbering.is_plain_international(text[1:])
        ):
            return text
    elif (
        default_region is not None
        and (match := _NANP_WITHOUT_PLUS.fullmatch(text)) is not None
        and numbering.country_code(default_region) == NANP_CODE
    ):
        return "+1" + match[1]
    return read_number(raw, default_region).phone


def read_number(raw: str, default_region: str | None) -> NumberReading:
    """Read a number as it is written in a list.

    A number with a plus sign is international, and so is one with an international prefix: `00`, or that of its region.
    Any other is read in `default_region`, and refused without one. *Possible* decides, not *valid*: number ranges open
    faster than tables are updated. Where digits have two readings, *valid* decides between them. Extensions are
    dropped; other letters make a text invalid. A whole number may be written as a decimal one (`43664123456.0`). The
    result is stable in any region.

    Args:
        raw: The number in any notation, length and content.
        default_region: The ISO 3166 alpha-2 region of numbers without a country code; unknown regions count as None.
    """
    text = raw.strip()
    if not text:
        return NumberReading(None, problem="is empty")
    if len(text) > _MAX_INPUT_LENGTH:
        return NumberReading(None, problem="is too long for a phone number")
    region = default_region.upper() if default_region is not None else None
    if region is not None and not numbering.is_region(region):
        region = None
    text = _EXTENSION.sub("", _plain(text))
    if is_scientific(text):
        return NumberReading(None, problem=LOST_DIGITS)
    reading = _read_digits(text, region)
    if (zero := _OPTIONAL_ZERO.match(text)) is not None and not _is_valid(reading):
        without = _read_digits(zero[1] + text[zero.end() :], region)
        reading = without if _is_valid(without) else reading
    # Where lengths vary, two short numbers are together as long as one.
    may_be_two = reading.phone is None or _BETWEEN_NUMBERS.search(text) is not None
    if (may_be_two and _are_two_numbers(text, region)) or _has_second_area_code(text, region):
        return NumberReading(None, problem=SEVERAL_NUMBERS)
    return reading


def canonical_phone(written: str, default_region: str | None) -> str | None:
    """Return the form in which a single number is contacted and registered; None for no number.

    This is what `normalise_single` returns. Digits in the form of E.164 that no numbering plan knows are kept for the
    provider to judge. Sending and opting out use this rule, so that every number that can be reached can opt out. The
    result is stable.
    """
    phone = normalise_single(written, default_region)
    return "+" + written.removeprefix("+") if phone is None and is_dialable(written) else phone


def normalise_single(written: str, default_region: str | None) -> str | None:
    """Return the E.164 form of a number that a request or a setting names alone, or None if it is not possible.

    This is what `normalise` returns. Digits in the form of E.164 that it refuses are international, also without their
    plus sign, as the pattern of POST /calls has it.
    """
    phone = normalise(written, default_region)
    return numbering.international(written.removeprefix("+")) if phone is None and is_dialable(written) else phone


def is_dialable(to: str) -> bool:
    r"""Return whether a text is what POST /calls accepts: `^\+?[1-9]\d{6,14}$`, ASCII digits, the whole text."""
    return DIALABLE.fullmatch(to) is not None


def _read_digits(text: str, region: str | None) -> NumberReading:
    number = _clean(text)
    if number is None:
        return NumberReading(None, problem="is not a phone number")
    if number[0] == "+":
        phone = numbering.international(number[1:])
        return NumberReading(phone, problem=None if phone is not None else "is not a possible number")
    if number.startswith("00"):
        reading = _read_behind_zeros(number, region)
    elif region is None:
        return NumberReading(None, problem="has no country code")
    else:
        reading = _read_in(number, region)
    if reading.phone is not None and reading.phone[1] == "1" and not _NANP_WITHOUT_PLUS.fullmatch(reading.phone[1:]):
        wanted = "its area code and its exchange must begin with 2 to 9"
        return NumberReading(None, problem=f"cannot be a North American number: {wanted}")
    return reading


def _read_behind_zeros(number: str, region: str | None) -> NumberReading:
    """Read digits that begin with `00`, as no national number does.

    Behind the zeros some regions write the number of an operator. A number of the region with a digit too many, or with
    its zero twice, is not taken for one of another country.
    """
    international = numbering.international(number[2:])
    if region is None:
        return _choose([international])
    behind_operator = numbering.local_readings(number, region)[1]
    reading = _choose([international, behind_operator])
    if reading.phone is None:
        return reading
    other = None
    if reading.phone != international and number.startswith(f"00{numbering.country_code(region)}"):
        other = f"+{number[2:]}"
    elif not numbering.is_valid(reading.phone):
        local = numbering.local_readings(number[1:], region)[0]
        other = local if local is not None and numbering.is_valid(local) else None
    return reading if other is None else NumberReading(None, problem=f"is ambiguous: {reading.phone} or {other}")


def _read_in(number: str, region: str) -> NumberReading:
    """Read digits that do not begin with `00` in a region."""
    code = str(numbering.country_code(region))
    national, behind_prefix = numbering.local_readings(number, region)
    own = numbering.international(number) if number.startswith(code) else None
    with_zero = numbering.with_first_zero(number, region)
    if not any((national, own, behind_prefix, with_zero)):
        local = " without its area code" if numbering.is_local(number, region) else ""
        return NumberReading(None, problem=f"is not a possible number of {region}{local}")
    starts_with_code = (
        number.startswith(code)
        and code != str(NANP_CODE)
        and numbering.is_nearly_as_long(number.removeprefix(code), region)
    )
    if starts_with_code:
        # With a digit too many or too few, a number without its plus sign has the digits of somebody else's landline.
        local_form = national
        own = own if own is not None and numbering.is_valid(own) else None
        certain = national is not None and (own is not None or _is_meant(number, national))
        national = national if certain else None
        if not any((national, own, behind_prefix, with_zero)):
            problem = f"starts with the country code of {region}, but +{number} is not a valid number"
            other = f"; as a local number it would be {local_form}" if local_form is not None else ""
            return NumberReading(None, problem=problem + other)
    reading = _choose([national, own, behind_prefix, with_zero], prefer_mobile=True)
    if reading.phone is None:
        return reading
    if reading.phone == own != national:
        return attrs.evolve(reading, correction=CALLING_CODE)
    if reading.phone == with_zero != national:
        return NumberReading(None, problem=f"has lost its first zero: {with_zero} would be possible")
    if starts_with_code and reading.phone == national and not numbering.is_national_form(number, national):
        return attrs.evolve(reading, correction=TRUNK_PREFIX)
    if reading.phone == national and number[0] != "0" and code != str(NANP_CODE):
        foreign = numbering.international(number)
        if foreign is not None and foreign != national and numbering.is_valid(foreign):
            return _beside_foreign(reading, number, foreign=foreign, region=region)
    return reading


def _beside_foreign(reading: NumberReading, number: str, *, foreign: str, region: str) -> NumberReading:
    """Return the reading of digits in a region that with a plus sign are a valid number of another country.

    A landline that has lost its trunk prefix has the digits of many a mobile number there.
    """
    national = reading.phone or ""
    if not numbering.is_valid(national):
        return NumberReading(None, problem=f"is not a number of {region}; with a plus sign it would be {foreign}")
    if numbering.number_kind(foreign) == "landline" or numbering.is_national_form(number, national):
        return reading
    if numbering.number_kind(national) == "mobile":
        return attrs.evolve(reading, correction=TRUNK_PREFIX)
    return NumberReading(None, problem=f"is ambiguous: {national} or {foreign}")


def _is_valid(reading: NumberReading) -> bool:
    return reading.phone is not None and numbering.is_valid(reading.phone)


def _is_meant(number: str, national: str) -> bool:
    """Return whether digits that start with the region's calling code are a local number, and nothing but one."""
    if not numbering.is_valid(national):
        return False
    return numbering.number_kind(national) == "mobile" or numbering.is_national_form(number, national)


def _choose(readings: list[str | None], *, prefer_mobile: bool = False) -> NumberReading:
    """Choose between the possible readings of digits, which may be equal."""
    found = list(dict.fromkeys(phone for phone in readings if phone is not None))
    if len(found) > 1:
        found = [phone for phone in found if numbering.is_valid(phone)] or found
    if len(found) > 1 and prefer_mobile:
        found = [phone for phone in found if numbering.number_kind(phone) == "mobile"] or found
    if len(found) > 1:
        return NumberReading(None, problem=f"is ambiguous: {' or '.join(found)}")
    return NumberReading(found[0]) if found else NumberReading(None, problem="is not a possible number")


def _are_two_numbers(text: str, region: str | None) -> bool:
    """Return whether a text has a whole number, and digits behind what may stand between two."""
    begin = 0
    for separator in _BETWEEN_NUMBERS.finditer(text):
        before = (text[: separator.start()], text[begin : separator.start()])
        begin = separator.end()
        if _ANY_DIGIT.search(text, begin) and any(_is_whole(part, region) for part in before):
            return True
    spaces = _SPACE.finditer(text)
    return any(_is_whole(text[: at.start()], region) and _is_whole(text[at.end() :], region) for at in spaces)


def _has_second_area_code(text: str, region: str | None) -> bool:
    """Return whether a text that could be one number is two, each with its area code: `030 1234 030 5678`."""
    for gap in _BEFORE_A_ZERO.finditer(text):
        first, second = text[: gap.start()], text[gap.end() :]
        groups, others = _DIGIT_GROUP.findall(first), _DIGIT_GROUP.findall(second)
        if min(sum(map(len, groups)), sum(map(len, others))) < _SHORTEST_OF_TWO:
            continue
        is_repeated = groups[0] == others[0]
        is_area_code = len(others[0]) >= _SHORTEST_AREA_CODE and (len(groups) == 1) == (len(others) == 1)
        if (is_repeated or is_area_code) and all(
            _is_whole(part, region, valid=not is_repeated) for part in (first, second)
        ):
            return True
    return False


def _is_whole(text: str, region: str | None, *, valid: bool = True) -> bool:
    """Return whether a part of a text is a valid number, or at least a possible one."""
    text = _plain(text)
    number = _clean(text)
    if number is None:
        return False
    if region is None and not number.startswith(("+", "00")):
        return len(number) >= _SHORTEST
    phone = _read_digits(text, region).phone
    return phone is not None and (not valid or numbering.is_valid(phone))


def _plain(text: str) -> str:
    """Return a text in ASCII digits, without invisible marks; a whole number in scientific notation is written out."""
    if not text.isascii():
        text = "".join(
            str(unicodedata.decimal(character, _FULL_WIDTH.get(character, character)))
            for character in text
            if unicodedata.category(character) != "Cf"
        )
    text = text.strip()
    return written_out(text[4:].strip() if text[:4].lower() == "tel:" else text)


def _clean(text: str) -> str | None:
    """Return the digits of a plain text, after a plus sign if there was one, or None for any other content."""
    kept: list[str] = []
    for character in text:
        if "0" <= character <= "9" or (character == "+" and not kept):
            kept.append(character)
        elif not (
            character in _PUNCTUATION
            or character in "\t\r\n"
            or unicodedata.category(character) in _SEPARATOR_CATEGORIES
        ):
            return None
    number = "".join(kept)
    return number if _DIGITS.fullmatch(number) else None


def register_hash(salt: str, phone: str) -> str:
    """Return the name of a number on the register: the same for the same number, and only with the workspace's salt.

    With the database, which has the salt, a search through all numbers finds the number; without the salt none does.
    """
    return PSEUDONYM_PREFIX + hmac.new(salt.encode(), phone.encode(), sha256).hexdigest()[:_PSEUDONYM_LENGTH]


def is_pseudonym(phone: str | None) -> bool:
    """Return whether this stands for the number of an erased person."""
    return phone is not None and phone.startswith(PSEUDONYM_PREFIX)


def is_erased(phone: str) -> bool:
    """Return whether the number of a request or a call was erased, with the person or with the campaign."""
    return not phone or is_pseudonym(phone)


def stored_forms(phone: str, default_region: str | None) -> tuple[str, ...]:
    """Return all forms in which a workspace may have stored the number of the person at `phone`, itself first.

    These are the spellings of the line, and what they were read as before readings were compared: 529b10ce took
    `4915123456701` in Germany for `+494915123456701`. An entry under such a form was made for this person.

    Args:
        phone: The number in E.164, or what stands for an erased one.
        default_region: The region of the workspace.
    """
    found = spellings(phone)
    if default_region is None or phone[:1] != "+":
        return found
    former = [form for each in found for form in former_readings(each, default_region)]
    return tuple(dict.fromkeys((*found, *former))) if former else found


_FIRST_PLACES: Final = 1 << 10


class PersonSet:
    """The people at numbers in E.164, in at most 32 bytes each; all spellings of a number are one person.

    A hash table with open addressing, at most half full; a number has at most 15 digits, and none is 0.
    """

    def __init__(self) -> None:
        self._places = array("Q", bytes(8 * _FIRST_PLACES))
        self._count = 0

    def __len__(self) -> int:
        """Return how many people there are."""
        return self._count

    def add(self, phone: str) -> bool:
        """Add the person at a number; return whether the person is new."""
        if not self._put(int(person_key(phone)[1:])):
            return False
        self._count += 1
        if 2 * self._count > len(self._places):
            stored = self._places
            self._places = array("Q", bytes(16 * len(stored)))
            for number in stored:
                if number:
                    self._put(number)
        return True

    def _put(self, number: int) -> bool:
        places = self._places
        last = len(places) - 1
        # Mixed, because numbers of one list are often consecutive.
        place = (number * 0x9E3779B97F4A7C15 >> 20) & last
        while places[place]:
            if places[place] == number:
                return False
            place = (place + 1) & last
        places[place] = number
        return True


_SMS_CHANNELS: Final = frozenset({"sms", "mms", "tel"})
"""Channels whose messages are answered by SMS, as are addresses without a channel."""

_PHONE_CHANNELS: Final = frozenset({"whatsapp", "rcs", "viber", "viber_service"})
"""Other channels that use phone numbers; the digits of others still (`messenger:…`) are not numbers."""

_ADDRESS: Final = re.compile(r"\s*(?P<channel>[A-Za-z_]{1,20}):(?P<rest>.*)", re.DOTALL)
_BEGINS_LIKE_A_NUMBER: Final = re.compile(r"[+(0-9]")

NUMBER_BUSY: Final = "sender_rate"
"""Reason of a contact that waits for the number of a pool that it gets its messages from."""

MAX_NUMBER_WAIT: Final = timedelta(minutes=15)
"""How long a contact waits before its number is looked at again, whose rate may have changed."""

_SERVICES: Final[Mapping[str, re.Pattern[str]]] = MappingProxyType(
    {
        # https://www.twilio.com/docs/messaging/services
        "twilio": re.compile(r"MG[0-9a-fA-F]{32}"),
        # The identifier of a messaging profile with a number pool.
        "telnyx": UUID,
    }
)
"""The identifiers of Messaging Services, from whose numbers the carrier chooses one for each contact, by carrier."""


def is_service(sender: str | None, carrier: str | None = None) -> bool:
    """Return whether a sender is a Messaging Service, of any carrier unless one is given."""
    patterns = _SERVICES.values() if carrier is None else [_SERVICES[carrier]] if carrier in _SERVICES else []
    return sender is not None and any(pattern.fullmatch(sender) for pattern in patterns)


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
        return InboundSender(canonical_phone(_international(rest), None), channel)
    return InboundSender(None, channel)


def number_of_channel(address: str) -> str | None:
    """Return the number, with its plus sign, at an address such as `whatsapp:14155550102`; None for any other text."""
    match = _ADDRESS.fullmatch(address)
    if match is None or match["channel"].lower() not in _PHONE_CHANNELS:
        return None
    rest = match["rest"].strip()
    return _international(rest) if _BEGINS_LIKE_A_NUMBER.match(rest) else None


def _international(number: str) -> str:
    return "+" + number.strip().removeprefix("+")
