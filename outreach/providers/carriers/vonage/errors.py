"""Classification of Vonage's error codes: https://developer.vonage.com/en/api-errors/messages.

The code is the fragment of the URL in `type`. General errors of the platform have words there instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from outreach.models.dispatch import FailureClass
from outreach.providers.carriers.base import LimitReset

FAILURES: Final[Mapping[str, FailureClass]] = MappingProxyType(
    {
        "1000": "rate_limited",
        "1010": "rejected",
        "1020": "bad_body",
        "1021": "rejected",
        "1022": "bad_body",
        "1040": "invalid_number",
        "1050": "opted_out",  # the number is barred
        "1060": "provider_funds",  # the account is barred
        "1070": "provider_funds",
        "1080": "provider_auth",
        "1090": "bad_body",
        "1100": "temporary",  # not submitted, for lack of a connection
        "1120": "bad_sender",
        "1130": "rejected",
        "1140": "bad_sender",
        "1150": "rejected",
        "1160": "rejected",  # not on the list of a trial account
        "1170": "invalid_number",
        "1180": "unreachable",
        "1190": "invalid_number",  # no longer active
        "1200": "unreachable",
        "1210": "filtered",
        "1220": "unreachable",
        "1230": "unreachable",
        "1240": "opted_out",
        "1241": "rate_limited",
        "1250": "unreachable",
        "1251": "unreachable",
        "1260": "unreachable",
        "1270": "filtered",
        "1280": "filtered",
        "1282": "filtered",
        "1290": "unreachable",  # the contact's own account has no credit
        "1300": "invalid_number",
        "1310": "invalid_number",
        "1330": "unreachable",
        "1331": "temporary",
        "1340": "rejected",
        "1350": "rejected",
        "1360": "unreachable",  # expired
        "1370": "rejected",
        "1380": "bad_body",
        "1381": "bad_body",
        "1382": "bad_body",
        "1400": "rejected",
        "1410": "rejected",
        "1420": "bad_sender",
        "1430": "invalid_number",
        "1440": "rejected",
        "1450": "rejected",
        "1451": "rejected",
        "1460": "rate_limited",
        "1461": "filtered",
        "1470": "filtered",
        "1472": "rate_limited",
        "1473": "filtered",
        "1480": "bad_sender",
        "1481": "bad_sender",
        "1482": "filtered",
        "1483": "opted_out",  # consent is not authorized
        "1484": "rejected",
        "low-balance": "provider_funds",
        "unauthorized": "provider_auth",
        "unathorized": "provider_auth",  # the documentation's spelling
        "unprovisioned": "provider_auth",
        "forbidden": "provider_auth",
        "invalid-json": "bad_body",
    }
)
"""Failure class by code; other codes go by the HTTP status."""

_INTERNAL_ERROR: Final = "1030"

AMBIGUOUS: Final = frozenset({_INTERNAL_ERROR, "1320"})
"""A platform error, and an already sent message: the outcome of this request is unknown."""


def error_code(error: Mapping[str, Any]) -> str | None:
    """Return the code of an error: the fragment of its `type`, else a `title` that is one; None if neither."""
    kind, title = error.get("type"), error.get("title")
    if isinstance(kind, str):
        fragment = kind.rpartition("#")[2] if "#" in kind else ""
        if 0 < len(fragment) <= 40:
            return fragment
    text = str(title) if isinstance(title, int | str) and not isinstance(title, bool) else ""
    return text if text in FAILURES or text in AMBIGUOUS else None


def reported_class(code: str | None) -> FailureClass:
    """Return the failure class of a message that the carrier reports as failed.

    One that was sent already is not sent again (1320); one that an error of the platform ended may be (1030).
    """
    return "unreachable" if code == _INTERNAL_ERROR else FAILURES.get(code or "", "rejected")


LIMIT_RESETS: Final[Mapping[str, LimitReset]] = MappingProxyType({"1460": "pacific_midnight", "1472": "minute"})
"""When limits end, by their codes; 1460 is most often the daily limit of a US network."""
