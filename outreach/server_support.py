"""Parts of the engine for `outreach_server` beyond its public modules: cells of spreadsheets, settings, log lines.

Not public: programs that embed the engine need none of it, and it changes without notice (docs/embedding.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio.lowlevel

from outreach.core.lazy_names import imported_when_used

if TYPE_CHECKING:
    from collections.abc import (
        AsyncIterator,
        Collection,
        Sequence,
    )
    from outreach.core.clock import (
        Clock,
        is_contact_zone as is_contact_zone,
        is_zone as is_zone,
    )
    from outreach.core.command_lines import (
        PROGRAM as PROGRAM,
        SERVE as SERVE,
        database_option as database_option,
    )
    from outreach.core.config import PUBLIC_URL_VARIABLE as PUBLIC_URL_VARIABLE
    from outreach.core.log_throttle import LogThrottle
    from outreach.core.logged_errors import (
        described as described,
        log_error as log_error,
        masked as masked,
    )
    from outreach.core.meant import (
        dates_like as dates_like,
        day_like as day_like,
        did_you_mean as did_you_mean,
        hours_like as hours_like,
        moment_like as moment_like,
        nearest as nearest,
        number_like as number_like,
        regions_like as regions_like,
        sentence as sentence,
        time_like as time_like,
        zones_like as zones_like,
    )
    from outreach.core.meant.countries import region_of_country as region_of_country
    from outreach.core.meant.date_formats import (
        DateFormat as DateFormat,
        date_format as date_format,
    )
    from outreach.engine import Outreach
    from outreach.insight.diagnosis.checks import (
        Check as Check,
        run_checks as run_checks,
    )
    from outreach.insight.readiness import FILES_GONE as FILES_GONE
    from outreach.ledger.settling.callback_checks import token_of as token_of
    from outreach.models.base import hidden_fields as hidden_fields
    from outreach.models.fields import (
        UNSTORABLE as UNSTORABLE,
        ListOf as ListOf,
        Model as Model,
        Option as Option,
        bounded_fields as bounded_fields,
        fields_of as fields_of,
    )
    from outreach.models.recurrence import (
        WEEKDAYS as WEEKDAYS,
        Recurrence as Recurrence,
        read_recurrence as read_recurrence,
    )
    from outreach.models.recovery import (
        ContactedMeanwhile,
        ListedContacts,
    )
    from outreach.models.settings import DEFAULT_CONCURRENCY as DEFAULT_CONCURRENCY
    from outreach.models.states import operator_actions as operator_actions
    from outreach.models.unsubscribe import imports_of as imports_of
    from outreach.models.workspace import require_sms as require_sms
    from outreach.rules.column_names import (
        LAST_NAMES_BESIDE as LAST_NAMES_BESIDE,
        NAMES as NAMES,
        NUMBERS as NUMBERS,
        REPLACED as REPLACED,
        VARIABLES_TOO as VARIABLES_TOO,
        Field as Field,
        bare_phone_name as bare_phone_name,
        decoded_once as decoded_once,
        fields_of_headers as fields_of_headers,
        plain as plain,
    )
    from outreach.rules.holidays import holiday_parts as holiday_parts
    from outreach.rules.numbering import (
        NumberKind as NumberKind,
        country_code as country_code,
        country_of as country_of,
        number_kind as number_kind,
        person_key as person_key,
    )
    from outreach.rules.phones import (
        OWN_NUMBER as OWN_NUMBER,
        SEVERAL_NUMBERS as SEVERAL_NUMBERS,
        normalise as normalise,
        read_number as read_number,
    )
    from outreach.rules.readiness import limits_starts as limits_starts
    from outreach.rules.report_figures import cost_of as cost_of
    from outreach.rules.rendering import (
        PlaceholderTally as PlaceholderTally,
        expected_names as expected_names,
        moment_name as moment_name,
        placeholders_of as placeholders_of,
        values_of as values_of,
        with_field_names as with_field_names,
    )
    from outreach.rules.segments import (
        composed as composed,
        is_blank as is_blank,
        name_spellings as name_spellings,
    )
    from outreach.rules.spreadsheets import (
        NumberCell as NumberCell,
        NumberCorrection as NumberCorrection,
        is_cell_error as is_cell_error,
        read_cell as read_cell,
        read_number_cell as read_number_cell,
    )
    from outreach.rules.webhooks import (
        DISABLED_REASONS as DISABLED_REASONS,
        failure_words as failure_words,
        is_success as is_success,
    )
    from outreach.serialization.exports.rows import escape_formula as escape_formula
    from outreach.serialization.field_rules import (
        read_timestamp as read_timestamp,
        require_object as require_object,
    )
    from outreach.serialization.json_parsing import read_simple_body as read_simple_body
    from outreach.serialization.webhook_bodies import (
        TYPES_FOR_ONE_ENDPOINT as TYPES_FOR_ONE_ENDPOINT,
        WEBHOOK_TYPES as WEBHOOK_TYPES,
    )
    from outreach.services.campaigns.contacts import prepare_recipient as prepare_recipient
    from outreach.services.context import JoinedReads as JoinedReads
    from outreach.services.tenants.resources import RESOURCE_SERVICES as RESOURCE_SERVICES
    from outreach.services.tenants.webhook_listening import (
        Delivery as Delivery,
        Listener as Listener,
    )


if not TYPE_CHECKING:  # which would accept any name otherwise
    __getattr__, __dir__, __all__ = imported_when_used(
        globals(),
        {
            "core.clock": "is_contact_zone is_zone",
            "core.command_lines": "PROGRAM SERVE database_option",
            "core.config": "PUBLIC_URL_VARIABLE",
            "core.logged_errors": "described log_error masked",
            "core.meant": (
                "dates_like day_like did_you_mean hours_like moment_like nearest number_like regions_like sentence "
                "time_like zones_like"
            ),
            "core.meant.countries": "region_of_country",
            "core.meant.date_formats": "DateFormat date_format",
            "insight.diagnosis.checks": "Check run_checks",
            "insight.readiness": "FILES_GONE",
            "ledger.settling.callback_checks": "token_of",
            "models.base": "hidden_fields",
            "models.fields": "UNSTORABLE ListOf Model Option bounded_fields fields_of",
            "models.recurrence": "WEEKDAYS Recurrence read_recurrence",
            "models.settings": "DEFAULT_CONCURRENCY",
            "models.states": "operator_actions",
            "models.unsubscribe": "imports_of",
            "models.workspace": "require_sms",
            "rules.column_names": (
                "LAST_NAMES_BESIDE NAMES NUMBERS REPLACED VARIABLES_TOO Field bare_phone_name decoded_once "
                "fields_of_headers plain"
            ),
            "rules.holidays": "holiday_parts",
            "rules.numbering": "NumberKind country_code country_of number_kind person_key",
            "rules.phones": "OWN_NUMBER SEVERAL_NUMBERS normalise read_number",
            "rules.readiness": "limits_starts",
            "rules.report_figures": "cost_of",
            "rules.rendering": (
                "PlaceholderTally expected_names moment_name placeholders_of values_of with_field_names"
            ),
            "rules.segments": "composed is_blank name_spellings",
            "rules.spreadsheets": "NumberCell NumberCorrection is_cell_error read_cell read_number_cell",
            "rules.webhooks": "DISABLED_REASONS failure_words is_success",
            "serialization.exports.rows": "escape_formula",
            "serialization.field_rules": "read_timestamp require_object",
            "serialization.json_parsing": "read_simple_body",
            "serialization.webhook_bodies": "TYPES_FOR_ONE_ENDPOINT WEBHOOK_TYPES",
            "services.campaigns.contacts": "prepare_recipient",
            "services.context": "JoinedReads",
            "services.tenants.resources": "RESOURCE_SERVICES",
            "services.tenants.webhook_listening": "Delivery Listener",
        },
    )


def log_throttle_of(engine: Outreach) -> LogThrottle:
    """Return what writes an engine's own log lines, which cannot flood the log, for the lines of a server around it.

    A problem of the database that it logs counts for `engine.readiness()` too.
    """
    return engine._log_throttle


def derived_keys_of(engine: Outreach, purpose: str) -> Sequence[bytes]:
    """Return 32 secret bytes for a purpose, the same in all processes of a database, for each key of its credentials.

    A first key is made only where no accounts and webhooks were as the engine was opened: it would open none of them.

    Raises:
        ConfigError: There is no usable key; the message says what to do.
    """
    return engine._vault._derived_keys(purpose, make=engine._may_make_key)


def clock_of(engine: Outreach) -> Clock:
    """Return the clock that an engine works by."""
    return engine._clock


def public_url_of(engine: Outreach) -> str | None:
    """Return the URL under which an engine's server is reached from outside, if it is configured."""
    return engine._config.public_url


def leave_services(engine: Outreach) -> Outreach:
    """Return an engine that is not open, after telling it to leave its services to `import_services` as it opens."""
    engine._services_come_later = True
    return engine


async def import_services(engine: Outreach) -> None:
    """Import the services of an engine, one in each turn of the event loop, so that requests are answered meanwhile."""
    for _ in engine._import_services():
        await anyio.lowlevel.checkpoint()


async def take_over(
    engine: Outreach,
    replaced: Outreach,
    workspace_id: str,
    campaign_id: str,
    *,
    seen: set[str] | None = None,
    dry_run: bool,
    actor: str,
) -> ContactedMeanwhile:
    """Continue a paused campaign's contacts from their state in a replaced database.

    See `outreach.services.campaigns.recovering.CampaignRecovery.take_over`.
    """
    here, there = engine.campaigns._recovery, replaced.campaigns._recovery
    return await here.take_over(workspace_id, campaign_id, there, seen=seen, dry_run=dry_run, actor=actor)


async def take_over_sent(
    engine: Outreach, workspace_id: str, campaign_id: str, *, known: Collection[str], dry_run: bool, actor: str
) -> ListedContacts:
    """Continue a paused campaign's contacts by what its provider lists.

    See `outreach.services.campaigns.listing_sent.CampaignSentLists.take_over_sent`.
    """
    part = engine.campaigns._sent_lists
    return await part.take_over_sent(workspace_id, campaign_id, known=known, dry_run=dry_run, actor=actor)


def listen(engine: Outreach, listener: Listener, *, number: int | None) -> AsyncIterator[Delivery]:
    """Yield what an endpoint would get; see `outreach.services.tenants.webhook_listening.listen`."""
    from outreach.services.tenants import webhook_listening

    return webhook_listening.listen(engine.webhooks._context, listener, number=number)
