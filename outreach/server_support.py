"""What `outreach_server` takes from the engine beyond its public modules: cells of spreadsheets, settings, log lines.

Not public: programs that embed the engine need none of it, and it changes without notice (docs/embedding.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from outreach.core.clock import is_zone
from outreach.core.command_lines import PROGRAM, SERVE, database_option
from outreach.core.config import PUBLIC_URL_VARIABLE
from outreach.core.logged_errors import described, log_error, masked
from outreach.core.meant import (
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
from outreach.core.meant.countries import region_of_country
from outreach.core.meant.date_formats import DateFormat, date_format
from outreach.insight.diagnosis.checks import Check, run_checks
from outreach.insight.readiness import FILES_GONE
from outreach.ledger.settling.callback_checks import token_of
from outreach.models.fields import ListOf, Option, bounded_fields, fields_of
from outreach.models.states import operator_actions
from outreach.rules.column_names import (
    LAST_NAMES_BESIDE,
    NAMES,
    NUMBERS,
    VARIABLES_TOO,
    Field,
    bare_phone_name,
    fields_of_headers,
    plain,
)
from outreach.rules.damaged_texts import REPLACED, decoded_once
from outreach.rules.holidays import holiday_parts
from outreach.rules.numbering import NumberKind, country_code, country_of, number_kind
from outreach.rules.phones import OWN_NUMBER, SEVERAL_NUMBERS, normalise, read_number
from outreach.rules.placeholders import PlaceholderTally, expected_names, with_field_names
from outreach.rules.rendering import moment_name, placeholders_of, recipient_values
from outreach.rules.spellings import person_key
from outreach.rules.spreadsheets import NumberCell, NumberCorrection, is_cell_error, read_cell, read_number_cell
from outreach.rules.texts import composed, is_blank, name_spellings
from outreach.serialization.exports.rows import escape_formula
from outreach.serialization.fast_bodies import read_simple_body
from outreach.serialization.field_rules import read_timestamp
from outreach.services.campaigns.contacts import prepare_recipient
from outreach.services.joined_reads import JoinedReads
from outreach.services.tenants.resources import RESOURCE_SERVICES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from outreach.core.clock import Clock
    from outreach.core.log_throttle import LogThrottle
    from outreach.engine import Outreach
    from outreach.models.recovery import ContactedMeanwhile

__all__ = [
    "FILES_GONE",
    "LAST_NAMES_BESIDE",
    "NAMES",
    "NUMBERS",
    "OWN_NUMBER",
    "PROGRAM",
    "PUBLIC_URL_VARIABLE",
    "REPLACED",
    "RESOURCE_SERVICES",
    "SERVE",
    "SEVERAL_NUMBERS",
    "VARIABLES_TOO",
    "Check",
    "DateFormat",
    "Field",
    "JoinedReads",
    "ListOf",
    "NumberCell",
    "NumberCorrection",
    "NumberKind",
    "Option",
    "PlaceholderTally",
    "bare_phone_name",
    "bounded_fields",
    "clock_of",
    "composed",
    "country_code",
    "country_of",
    "database_option",
    "date_format",
    "dates_like",
    "day_like",
    "decoded_once",
    "derived_keys_of",
    "described",
    "did_you_mean",
    "escape_formula",
    "expected_names",
    "fields_of",
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
    "operator_actions",
    "person_key",
    "placeholders_of",
    "plain",
    "prepare_recipient",
    "public_url_of",
    "read_cell",
    "read_number",
    "read_number_cell",
    "read_simple_body",
    "read_timestamp",
    "recipient_values",
    "region_of_country",
    "regions_like",
    "run_checks",
    "sentence",
    "take_over",
    "time_like",
    "token_of",
    "with_field_names",
    "zones_like",
]


def log_throttle_of(engine: Outreach) -> LogThrottle:
    """Return what writes an engine's own log lines, which cannot flood the log, for the lines of a server around it.

    A problem of the database that it logs counts for `engine.readiness()` too.
    """
    return engine._log_throttle


def derived_keys_of(engine: Outreach, purpose: str) -> Sequence[bytes]:
    """Return 32 secret bytes for a purpose, the same in all processes of a database, for each key of its credentials.

    Raises:
        ConfigError: There is no usable key; the message says what to do.
    """
    return engine._vault._derived_keys(purpose)


def clock_of(engine: Outreach) -> Clock:
    """Return the clock that an engine works by."""
    return engine._clock


def public_url_of(engine: Outreach) -> str | None:
    """Return the URL under which an engine's server is reached from outside, if it is configured."""
    return engine._config.public_url


async def take_over(
    engine: Outreach, replaced: Outreach, workspace_id: str, campaign_id: str, *, dry_run: bool, actor: str
) -> ContactedMeanwhile:
    """Continue a paused campaign's contacts from their state in a replaced database.

    See `outreach.services.campaigns.recovering.CampaignRecovery.take_over`.
    """
    here, there = engine.campaigns._recovery, replaced.campaigns._recovery
    return await here.take_over(workspace_id, campaign_id, there, dry_run=dry_run, actor=actor)
