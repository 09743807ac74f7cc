"""`campaigns preflight`: what a campaign will do to its contacts, before it starts."""

from __future__ import annotations

from collections.abc import Sequence

import click

from outreach import Campaign, Outreach
from outreach.http import document_of, to_json
from outreach.models import ContactExample, ContactPreview, Preflight
from outreach_server.cli import documents
from outreach_server.cli.base import Command, state, with_campaign
from outreach_server.cli.durations import time_text
from outreach_server.cli.output import cell, console, echo_json, fields, listing, note, plural
from outreach_server.cli.problems import explain_values
from outreach_server.cli.setup.prices import cost_text
from outreach_server.cli.values import CAMPAIGN


@click.command("preflight", cls=Command)
@click.argument("campaign_id", type=CAMPAIGN)
@click.option("--contact", metavar="PHONE", help="Show what this contact gets, and whether it is contacted.")
def preflight_(campaign_id: str, contact: str | None) -> None:
    """Show who will be contacted, who is left out and why, what is sent and what it costs.

    Nothing is sent or changed. The rules are those that the running campaign follows.
    """

    async def work(engine: Outreach, campaign: Campaign) -> tuple[Preflight, str]:
        found = await engine.campaigns.preflight(campaign.workspace_id, campaign_id, contact=contact)
        return found, campaign.timezone

    show_preflight(*with_campaign(campaign_id, work), contact)


def show_preflight(found: Preflight, zone: str, contact: str | None = None) -> None:
    """Print a preflight, with times of a zone; with a contact, that contact alone."""
    if state().as_json:
        echo_json(document_of(found))
        return
    if contact is not None:
        if not found.asked:
            raise click.ClickException(f"{contact!r} is not among the contacts.")
        for one in found.asked:
            _show_contact(one, zone)
        return
    out = console()
    out.print(fields(_summary(found), zone))
    if found.left_out:
        click.echo("\nLeft out:")
        rows = [
            {"rule": one.rule, "contacts": one.count, "why": one.why, "such as": _examples(one.examples)}
            for one in found.left_out
        ]
        out.print(listing(rows, ("rule", "contacts", "why", "such as")))
    if found.held_back:
        click.echo("\nContacted later:")
        later = [
            {
                "rule": one.rule,
                "contacts": one.count,
                "why": one.why,
                "from": to_json(one.first_at),
                "to": to_json(one.last_at),
                "such as": _examples(one.examples),
            }
            for one in found.held_back
        ]
        out.print(listing(later, ("rule", "contacts", "why", "from", "to", "such as"), zone))
    _show_characters(found)
    _show_replacement(found)
    if found.samples:
        click.echo("\nTexts:" if found.channel == "sms" else "\nVariables:")
        for one in found.samples:
            _show_contact(one, zone)
    for problem in found.problems:
        note(f"It cannot start yet: {problem.message}")
    for warning in found.warnings:
        note(f"Warning: {warning.message}")
    if found.unknown_placeholders:
        names = ", ".join(f"{{{{{name}}}}}" for name in found.unknown_placeholders)
        note(f"Nothing fills {names}: a blank is sent in its place.")
    counted = f"{plural(found.contacted, 'contact')} that will be contacted"
    for line in explain_values(found.placeholder_problems, counted, unknown=found.unknown_placeholders):
        note(line)
    for suspicious in found.text_warnings:
        note(suspicious.message)


def _summary(found: Preflight) -> documents.Document:
    shares = ", ".join(f"{one.messages} with {plural(one.segments, 'segment')}" for one in found.segment_shares)
    summary = {
        "contacts": found.contacts,
        "will be contacted": found.contacted,
        "left out": sum(one.count for one in found.left_out),
        "ended already": found.ended or None,
        "first turn": to_json(found.at),
        "messages": found.messages,
        "segments": f"{found.segments}: {shares}" if shares else None,
        "get only part of the flow": ", ".join(f"{count}: {why}" for why, count in found.ends_early.items()),
        "cost": cost_text(found.cost, found.channel) or "-",
        "about the cost": found.cost_note,
    }
    return {name: value for name, value in summary.items() if value not in {None, ""} and (value or name != "messages")}


def _show_characters(found: Preflight) -> None:
    encodings = found.encodings
    if not encodings.ucs2_messages:
        return
    have = "message has" if encodings.ucs2_messages == 1 else "messages have"
    saved = plural(encodings.saves, "segment") if encodings.saves else "no segment here"
    click.echo(
        f"\n{encodings.ucs2_messages} {have} characters outside GSM-7, so that 70 instead of 160 characters are "
        f"a segment. Replacing these saves {saved}:"
    )
    rows = [
        {
            "character": one.character,
            "name": one.name,
            "messages": one.messages,
            "replace with": "nothing like it" if one.replacement is None else repr(one.replacement),
            "saves": one.saves,
        }
        for one in encodings.characters
    ]
    console().print(listing(rows, ("character", "name", "messages", "replace with", "saves")))


def _show_replacement(found: Preflight) -> None:
    """Print what the switch changes, or what it would save; of each text the lines that differ."""
    replacement = found.replacement
    texts, saves = plural(replacement.messages, "text"), plural(replacement.saves, "segment")
    if replacement.enabled and replacement.messages:
        contacts = plural(replacement.contacts, "contact")
        click.echo(f"\nCharacters are replaced in {texts} of {contacts}, which saves {saves}:")
    elif replacement.saves:
        click.echo(f"\nWith --replace-characters, {texts} would be in plain characters, which saves {saves}:")
    else:
        return
    for one in replacement.examples:
        click.echo(f"  {cell(one.phone_number)}")
        for before, after in zip(one.before.splitlines(), one.after.splitlines(), strict=False):
            if before != after:
                click.echo(f"    - {cell(before)}\n    + {cell(after)}")


def _show_contact(one: ContactPreview, zone: str) -> None:
    outcome = one.outcome.replace("_", " ")
    rule = f": {one.rule}" if one.rule else ""
    until = f", until {time_text(one.until, zone)}" if one.until is not None else ""
    click.echo(f"  {cell(one.phone_number)}  {outcome}{rule}{until}")
    for message in one.messages:
        problem = f", {message.problem}" if message.problem else ""
        segments = plural(message.segments, "segment")
        click.echo(f"    [{segments}, {message.encoding}, {message.units} units{problem}]")
        for line in message.text.splitlines():
            click.echo(f"    {cell(line)}")
    if not one.messages:
        shown = ", ".join(f"{name}={value}" for name, value in one.variables.items())
        click.echo(f"    {cell(shown)}")


def _examples(examples: Sequence[ContactExample]) -> str:
    return ", ".join(one.phone_number + (f" ({one.detail})" if one.detail else "") for one in examples)
