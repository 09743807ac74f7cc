"""What `outreach_server` takes from the engine beyond its public modules: cells of spreadsheets, settings, log lines.

Not public: programs that embed the engine need none of it, and it changes without notice (docs/embedding.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from outreach.command_lines import PROGRAM, database_option
from outreach.config import PUBLIC_URL_VARIABLE
from outreach.convert.exports.rows import escape_formula
from outreach.convert.fast_bodies import read_simple_body
from outreach.logged_errors import described, log_error, masked
from outreach.policy.countries import region_of_country
from outreach.policy.holidays import holiday_parts
from outreach.policy.numbering import NumberKind, country_code, country_of, number_kind
from outreach.policy.phones import normalise, read_number
from outreach.policy.spellings import person_key
from outreach.policy.spreadsheets import NumberCell, NumberCorrection, is_cell_error, read_cell, read_number_cell
from outreach.services.contacts import prepare_recipient

if TYPE_CHECKING:
    from outreach.engine import Outreach
    from outreach.log_throttle import LogThrottle

__all__ = [
    "PROGRAM",
    "PUBLIC_URL_VARIABLE",
    "NumberCell",
    "NumberCorrection",
    "NumberKind",
    "country_code",
    "country_of",
    "database_option",
    "described",
    "escape_formula",
    "holiday_parts",
    "is_cell_error",
    "log_error",
    "log_throttle_of",
    "masked",
    "normalise",
    "number_kind",
    "person_key",
    "prepare_recipient",
    "read_cell",
    "read_number",
    "read_number_cell",
    "read_simple_body",
    "region_of_country",
]


def log_throttle_of(engine: Outreach) -> LogThrottle:
    """Return what writes an engine's own log lines, which cannot flood the log, for the lines of a server around it.

    A problem of the database that it logs counts for `engine.readiness()` too.
    """
    return engine._log_throttle
