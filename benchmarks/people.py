"""Contacts, campaigns and requests, the same for every side."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Final

import orjson

SENDER: Final = "+14155550199"
REGISTERED: Final = 50_000
"""Numbers on the register, where there is one."""

_FIRST: Final = 12_015_550_000
_FIRST_REGISTERED: Final = 13_015_550_000
_EVERY_REGISTERED: Final = 100
_EVERY_DRAFT: Final = 10
_EVERY_SPRING: Final = 100

MESSAGE: Final = "Hi {{first_name}}, the {{plan}} plan has come to {{city}}."


def phone(number: int) -> str:
    """Return the number of the contact that is counted so."""
    return f"+{_FIRST + number}"


def registered(count: int = REGISTERED) -> list[str]:
    """Return the numbers that are on the register."""
    return [f"+{_FIRST_REGISTERED + number}" for number in range(count)]


def contact(number: int) -> dict[str, Any]:
    """Return a contact with all five fields and two custom variables."""
    return {
        "phone_number": phone(number),
        "first_name": f"Ada{number}",
        "last_name": "Lovelace",
        "email": f"ada{number}@example.com",
        "company": "Analytical Engines",
        "custom_variables": {"city": "London", "plan": f"P{number % 7}"},
    }


def body(contacts: int) -> bytes:
    """Return the body of POST /sms-campaigns: one in a hundred is on the register, in no order of numbers."""
    people = [contact(number) for number in range(contacts)]
    for number in range(_EVERY_REGISTERED - 1, contacts, _EVERY_REGISTERED):
        people[number]["phone_number"] = f"+{_FIRST_REGISTERED + number // _EVERY_REGISTERED}"
    random.Random(1).shuffle(people)
    fields = {
        "name": "Spring",
        "message_body": MESSAGE,
        "sms_carrier": "twilio",
        "sms_from_number": SENDER,
        "sms_rate_per_minute": 600,
        "recipients": people,
    }
    return orjson.dumps(fields)


def excluded(contacts: int) -> int:
    """Return how many contacts of such a body are on the register."""
    return contacts // _EVERY_REGISTERED


def campaign_name(number: int) -> str:
    """Return the name of the campaign that is counted so: one in a hundred has Spring in it."""
    return f"{'Spring offer' if number % _EVERY_SPRING == 0 else 'Reminder'} {number}"


def is_draft(number: int) -> bool:
    """Return whether the campaign that is counted so is not ready: one in ten."""
    return number % _EVERY_DRAFT == 1


def call_bodies(agent_id: str, start: int, count: int) -> Sequence[bytes]:
    """Return bodies of POST /calls, each to another number."""
    return [
        orjson.dumps({"agent_id": agent_id, "to": phone(number), "variables": {"name": "Ada"}})
        for number in range(start, start + count)
    ]
