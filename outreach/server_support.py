"""What `outreach_server` takes from the engine beyond its public modules: cells of spreadsheets, settings, log lines.

Not public: programs that embed the engine need none of it, and it changes without notice (docs/embedding.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from outreach.clock import is_zone
from outreach.command_lines import PROGRAM, database_option
from outreach.config import PUBLIC_URL_VARIABLE
from outreach.convert.exports.rows import escape_formula
from outreach.convert.fast_bodies import read_simple_body
from outreach.logged_errors import described, log_error, masked
from outreach.meant import (
    dates_like,
    day_like,
    did_you_mean,
    hours_like,
    moment_like,
    nearest,
    number_like,
    regions_like,
    sentence,
    time_like,
    zones_like,
)
from outreach.meant.countries import region_of_country
from outreach.meant.date_formats import DateFormat, date_format
from outreach.policy.column_names import (
    LAST_NAMES_BESIDE,
    NAMES,
    NUMBERS,
    Field,
    bare_phone_name,
    fields_of_headers,
    plain,
)
from outreach.policy.damaged_texts import REPLACED, decoded_once
from outreach.policy.holidays import holiday_parts
from outreach.policy.numbering import NumberKind, country_code, country_of, number_kind
from outreach.policy.phones import OWN_NUMBER, SEVERAL_NUMBERS, normalise, read_number
from outreach.policy.placeholders import PlaceholderTally, expected_names, with_field_names
from outreach.policy.rendering import moment_name, placeholders_of, recipient_values
from outreach.policy.spellings import person_key
from outreach.policy.spreadsheets import NumberCell, NumberCorrection, is_cell_error, read_cell, read_number_cell
from outreach.policy.texts import composed, is_blank, name_spellings
from outreach.services.contacts import prepare_recipient
from outreach.services.readiness import FILES_GONE

if TYPE_CHECKING:
    from outreach.engine import Outreach
    from outreach.log_throttle import LogThrottle

__all__ = [
    "FILES_GONE",
    "LAST_NAMES_BESIDE",
    "NAMES",
    "NUMBERS",
    "OWN_NUMBER",
    "PROGRAM",
    "PUBLIC_URL_VARIABLE",
    "REPLACED",
    "SEVERAL_NUMBERS",
    "DateFormat",
    "Field",
    "NumberCell",
    "NumberCorrection",
    "NumberKind",
    "PlaceholderTally",
    "bare_phone_name",
    "composed",
    "country_code",
    "country_of",
    "database_option",
    "date_format",
    "dates_like",
    "day_like",
    "decoded_once",
    "described",
    "did_you_mean",
    "escape_formula",
    "expected_names",
    "fields_of_headers",
    "holiday_parts",
    "hours_like",
    "is_blank",
    "is_cell_error",
    "is_zone",
    "log_error",
    "log_throttle_of",
    "masked",
    "moment_like",
    "moment_name",
    "name_spellings",
    "nearest",
    "normalise",
    "number_kind",
    "number_like",
    "person_key",
    "placeholders_of",
    "plain",
    "prepare_recipient",
    "read_cell",
    "read_number",
    "read_number_cell",
    "read_simple_body",
    "recipient_values",
    "region_of_country",
    "regions_like",
    "sentence",
    "time_like",
    "with_field_names",
    "zones_like",
]


def log_throttle_of(engine: Outreach) -> LogThrottle:
    """Return what writes an engine's own log lines, which cannot flood the log, for the lines of a server around it.

    A problem of the database that it logs counts for `engine.readiness()` too.
    """
    return engine._log_throttle
