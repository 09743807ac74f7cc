"""What prevents a campaign's start, each with the command that fixes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from outreach_server.cli.output import amount, cell

if TYPE_CHECKING:
    from outreach import Campaign
    from outreach.errors import CannotStart, ErrorDetail
    from outreach.models import PlaceholderProblem, StartCheck

_MAX_NAME_LENGTH: Final = 40
_MAX_NAMES: Final = 20

_UPDATES: Final = {
    "body": "--message TEXT",
    "flow_id": "--flow FLOW",
    "from_number": "--from NUMBER",
    "carrier": "--carrier NAME",
    "agent_id": "--agent AGENT",
    "scheduled_expires_at": "--expires-at TIME",
    "business_hours": "--hours 'DAYS FROM-TO' --timezone ZONE",
}
"""The option of `campaigns update` that sets a field."""

_OF_AGENTS: Final = {"agent.is_active": "--active", "agent.allow_outbound": "--allow-outbound"}
"""The options of `agents update`."""


def explain_start(error: CannotStart, campaign: Campaign) -> str:
    """Return why a campaign cannot start, and what to run."""
    lines = [f"Campaign {campaign.name!r} cannot start:", *(f"  {detail.message}" for detail in error.details)]
    return "\n".join([*lines, *_commands(error.details, campaign)])


def explain_obstacles(missing: Sequence[ErrorDetail], campaign: Campaign) -> str:
    """Return what prevents the start of a campaign, and what to run."""
    head = "It is a draft: " if campaign.status == "draft" else "It cannot be started yet: "
    lines = [head + " ".join(detail.message for detail in missing)]
    return "\n".join([*lines, *_commands(missing, campaign)])


def _commands(details: Sequence[ErrorDetail], campaign: Campaign) -> list[str]:
    """Return the commands that fix the problems."""
    commands = []
    # With a flow, `--message` would remove the flow, so the flow's text has to change.
    of_flow = {"body"} if campaign.message_source == "flow" else set()
    paths = [detail.path for detail in details if detail.path not in of_flow]
    for what, known in (
        (f"campaigns update {campaign.id}", _UPDATES),
        (f"agents update {campaign.agent_id}", _OF_AGENTS),
    ):
        options = [known[path] for path in paths if path in known]
        commands += [f"{what} {' '.join(options)}"] if options else []
    others = [_command_for(detail, campaign) for detail in details]
    return [f"  outreach-server {command}" for command in [*commands, *(one for one in others if one is not None)]]


def explain_placeholders(names: Sequence[str], campaign: Campaign) -> str:
    """Return which placeholders have no value, and what to do."""
    listed = ", ".join(f"{{{{{cell(name[:_MAX_NAME_LENGTH])}}}}}" for name in names[:_MAX_NAMES])
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    known = ", ".join(cell(name[:_MAX_NAME_LENGTH]) for name in (campaign.variable_names or ())[:_MAX_NAMES])
    variables = f" and these variables: {known}" if known else ", and no variables of their own"
    where = "flows update" if campaign.message_source == "flow" else "campaigns update"
    return (
        f"No value for {listed}{more}: a blank would be sent. The contacts have first_name, last_name, email, "
        f"company, phone_number{variables}. Correct the text ({where}), give a fallback such as "
        "{{first_name|there}}, declare the variable (settings set --variable NAME), or start the campaign with "
        "--allow-unknown-placeholders."
    )


def explain_values(
    problems: Sequence[PlaceholderProblem], counted: str, *, unknown: Sequence[str] = ()
) -> Iterator[str]:
    """Yield how many contacts have no value for a placeholder, or no date in it, and what to do.

    Args:
        problems: What was counted.
        counted: Among how many contacts it was counted, such as `the first 10,000 contacts`.
        unknown: Placeholders that nothing fills, which are explained by themselves.
    """
    for one in problems:
        name = f"{{{{{cell(one.name[:_MAX_NAME_LENGTH])}}}}}"
        have = "has" if one.count == 1 else "have"
        such = ", ".join(cell(each.detail or each.phone_number) for each in one.examples)
        if one.problem == "no_time":
            yield (
                f"Of {counted}, {one.count:,} {have} a date without a time of day for {name}, whose format shows one: "
                f"it is sent as it is ({such}). Write such values as 2026-12-08 14:05."
            )
        elif one.problem == "no_date":
            yield (
                f"Of {counted}, {one.count:,} {have} a value for {name} that is not read as a date, and is sent as it "
                f"is ({such}). Write dates as 2026-12-08."
            )
        elif one.name not in unknown:
            kept = "" if one.date is None else f"|date:{cell(one.date)}"
            yield (
                f"Of {counted}, {one.count:,} {have} no value for {name}: a blank is sent in its place ({such}). Give "
                f"it a fallback, such as {{{{{cell(one.name[:_MAX_NAME_LENGTH])}{kept}|there}}}}."
            )


def explain_failing(checked: StartCheck, campaign: Campaign) -> str:
    """Return how many contacts will fail because of their text, and what to do."""
    looked = contacts_checked(checked)
    why = {
        "over_segment_cap": "with a text over the segment cap (settings set --max-segments)",
        "empty_message": "with an empty text",
    }
    counts = " and ".join(f"{count:,} {why[reason]}" for reason, count in checked.failures_by_reason.items())
    return (
        f"Of {looked}, {checked.failing:,} will fail: {counts}. The text can be changed only before the start: to "
        f"start over, cancel it with: outreach-server campaigns cancel {campaign.id}"
    )


def contacts_checked(checked: StartCheck) -> str:
    """Return how many contacts were checked, in words."""
    if checked.checked >= checked.contacts:
        return amount(checked.checked, "contact")
    return f"the first {checked.checked:,} of {amount(checked.contacts, 'contact')}"


def started_late(campaign: Campaign) -> bool:
    """Return whether a scheduled campaign was started after its time."""
    return campaign.schedule_type == "scheduled" and campaign.status == "active"


def _command_for(detail: ErrorDetail, campaign: Campaign) -> str | None:
    """Return the command that fixes a problem; None if there is no single one."""
    kind, _, rest = detail.path.partition(".")
    match kind:
        case "account":
            return f"accounts connect {campaign.workspace_id} {rest}"
        case "max_segments" | "body" if campaign.message_source == "flow":
            return f"flows update {campaign.workspace_id} {campaign.flow_id} --file FILENAME"
        case "max_segments":
            return f"campaigns update {campaign.id} --message TEXT"
        case "placeholders":
            return f"campaigns start {campaign.id} --allow-unknown-placeholders"
        case _:
            return None
