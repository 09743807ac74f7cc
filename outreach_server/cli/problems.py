"""Problems for people: what is wrong, until when, and the command that fixes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from outreach_server.cli.durations import UTC_NAME, until_text
from outreach_server.cli.output import cell, plural

if TYPE_CHECKING:
    from outreach import Campaign
    from outreach.errors import Problem
    from outreach.models import PlaceholderProblem, StartCheck


EXIT_STATUS: Final = {None: 0, "info": 0, "warning": 3, "critical": 4}
"""The exit status of `status` and `doctor`, by the most urgent problem; 1 and 2 are those of every command."""

MARKS: Final = {None: "", "info": "i", "warning": "-", "critical": "!"}

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


def problem_text(problem: Problem, now: datetime, zone: str = UTC_NAME) -> str:
    """Return a problem in a line: what is wrong, until when, and what to run."""
    until = "" if problem.until is None else f" It goes on at {until_text(problem.until, now, zone)}."
    fix = f" Fix it with: {problem.commands[0]}" if problem.commands else ""
    return f"{problem.message}{until}{fix}"


def explain_start(problems: Sequence[Problem], campaign: Campaign) -> str:
    """Return why a campaign cannot start, and what to run."""
    lines = [f"Campaign {campaign.name!r} cannot start:", *(f"  {one.message}" for one in problems)]
    return "\n".join([*lines, *_commands(problems, campaign)])


def _commands(problems: Sequence[Problem], campaign: Campaign) -> list[str]:
    """Return the commands that fix the problems."""
    commands = []
    # With a flow, `--message` would remove the flow, so the flow's text has to change.
    of_flow = {"body"} if campaign.message_source == "flow" else set()
    paths = [one.path for one in problems if one.path not in of_flow]
    for what, known in (
        (f"campaigns update {campaign.id}", _UPDATES),
        (f"agents update {campaign.agent_id}", _OF_AGENTS),
    ):
        options = [known[path] for path in paths if path in known]
        commands += [f"{what} {' '.join(options)}"] if options else []
    others = [_command_for(one, campaign) for one in problems]
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
        return plural(checked.checked, "contact")
    return f"the first {checked.checked:,} of {plural(checked.contacts, 'contact')}"


def _command_for(problem: Problem, campaign: Campaign) -> str | None:
    """Return the command that fixes a problem; None if there is no single one."""
    kind, _, rest = problem.path.partition(".")
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
