"""`accounts`: the provider accounts of live workspaces."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import BinaryIO, Final

import click

from outreach import EngineConfig, Outreach, Workspace
from outreach.http import to_json
from outreach.models import Account, CallbackCheck
from outreach.protocols import AccountCheck, CredentialField
from outreach.server_support import PUBLIC_URL_VARIABLE
from outreach_server.cli import interruptions
from outreach_server.cli.base import Group, actor, state, with_engine
from outreach_server.cli.collecting import collect
from outreach_server.cli.durations import time_text
from outreach_server.cli.output import echo_json, note, show, show_list
from outreach_server.cli.serving.sandboxed import note_sandbox
from outreach_server.cli.upkeep.throttles import throttle_text
from outreach_server.cli.values import ACCOUNT, PROVIDER, WORKSPACE, name_of

_LARGEST_FILE: Final = 100_000
_NO_ADDRESS: Final = (
    f"No callback URL: set {PUBLIC_URL_VARIABLE}, such as https://outreach.example.com, for this command and for the "
    "server (serve --public-url sets it for that server only)."
)


@click.group(cls=Group)
def accounts() -> None:
    """Connect workspaces to carriers and voice providers."""


@accounts.command("providers")
def providers() -> None:
    """List the carriers and voice providers that an account can be at, and where each comes from."""
    engine = Outreach.open("memory://", config=EngineConfig())
    show_list([to_json(one) for one in engine.accounts.providers()], ("name", "kind", "source"), empty="None.")
    for problem in engine.accounts.adapter_problems():
        note(problem.message)


@accounts.command("fields")
@click.argument("provider", type=PROVIDER)
def fields(provider: str) -> None:
    """Show what an account at PROVIDER needs."""
    # The fields depend on no database.
    found = Outreach.open("memory://", config=EngineConfig()).accounts.credential_fields(provider)
    show_list(
        [{"name": f.name, "required": f.required, "secret": f.secret, "meaning": f.description} for f in found],
        ("name", "required", "secret", "meaning"),
        empty="It needs nothing.",
    )


@accounts.command("connect")
@click.argument("workspace_id", type=WORKSPACE)
@click.argument("provider", type=PROVIDER)
@click.option(
    "--file", "file", type=click.File("rb"), help="A JSON object of the values, by name; - reads standard input."
)
@click.option("--set", "given", multiple=True, metavar="NAME=VALUE", help="One value that is no secret.")
@click.option(
    "--replies-to-keywords/--no-replies-to-keywords",
    "replies",
    default=None,
    help="Whether the provider itself replies to STOP, START and HELP, so that the engine does not.",
)
@click.option(
    "--refuse-previous",
    is_flag=True,
    help="Refuse callbacks that are signed with the replaced credentials at once, because others know these.",
)
def connect(
    workspace_id: str,
    provider: str,
    file: BinaryIO | None,
    given: Sequence[str],
    replies: bool | None,
    refuse_previous: bool,
) -> None:
    """Connect a workspace to PROVIDER, or replace its account's credentials.

    Required values that are not given are asked for at a terminal. Credentials are encrypted before they are stored. An
    existing account keeps its id and callback URL. Connecting ends a throttle of the provider. Callbacks signed with
    the replaced credentials are accepted for 24 hours.
    """

    async def work(engine: Outreach) -> tuple[Account, Workspace, bool]:
        workspace = await engine.workspaces.get(workspace_id)
        known = [one.previous_accepted_until async for one in engine.accounts.iter_all(workspace_id)]
        wanted = engine.accounts.credential_fields(provider)
        with interruptions.reading():
            values = {**_from_file(file), **_from_options(given, wanted)}
            values |= _asked_for(wanted, values)
        account = await engine.accounts.connect(
            workspace_id,
            provider,
            values,
            replies_to_keywords=replies,
            refuse_previous=refuse_previous,
            actor=actor(),
        )
        return account, workspace, account.previous_accepted_until not in known

    made, workspace, replaced = with_engine(work)
    show(to_json(made))
    note_sandbox(workspace)
    note(f"Check it with: outreach-server accounts check {made.id}")
    if made.previous_accepted_until is not None and replaced:
        note(
            "Callbacks that are signed with earlier credentials are accepted until "
            f"{time_text(made.previous_accepted_until)}. If others know these, connect again with "
            "--refuse-previous."
        )
    if made.callback_url is None:
        note(_NO_ADDRESS)


@accounts.command("list")
@click.argument("workspace_id", type=WORKSPACE)
def list_(workspace_id: str) -> None:
    """List a workspace's accounts. Secrets are not shown."""
    found = with_engine(lambda engine: collect(engine.accounts.iter_all(workspace_id)))
    show_list(
        [to_json(item) for item in found],
        ("id", "provider", "credentials", "callback_url", "throttled_until", "updated_at"),
        empty=f"The workspace has no accounts. Connect one: outreach-server accounts connect {workspace_id} PROVIDER",
    )
    for item in found:
        if item.problem is not None:
            note(item.problem)
        if item.throttled_until is not None:
            note(throttle_text(workspace_id, item.provider, item.throttled_until))
    if any(item.callback_url is None for item in found):
        note(_NO_ADDRESS)


@accounts.command("check")
@click.argument("account_id", type=ACCOUNT)
@click.option(
    "--callback",
    is_flag=True,
    help="Test the callback URL instead: call it as the provider would, and see whether that reaches this database.",
)
def check(account_id: str, callback: bool) -> None:
    """Test an account with a harmless request, and say what is wrong; exits with 1 if something is."""
    if callback:
        _check_callback(account_id)
        return

    async def work(engine: Outreach) -> tuple[Account, AccountCheck, Workspace]:
        account = await engine.accounts.get_anywhere(account_id)
        found = await engine.accounts.check(account.workspace_id, account_id)
        return account, found, await engine.workspaces.get(account.workspace_id)

    account, found, workspace = with_engine(work)
    until = account.throttled_until
    if state().as_json:
        held = {"throttled_by": account.throttled_by, "throttled_until": to_json(until)}
        echo_json({"account_id": account_id, "ok": found.ok, "message": found.message, **held})
    else:
        click.echo(found.message, err=not found.ok)
        if until is not None:
            note(throttle_text(account.workspace_id, account.provider, until))
        note_sandbox(workspace)
    if not found.ok:
        sys.exit(1)


def _check_callback(account_id: str) -> None:
    async def work(engine: Outreach) -> CallbackCheck:
        account = await engine.accounts.get_anywhere(account_id)
        return await engine.accounts.check_callback(account.workspace_id, account_id)

    found = with_engine(work)
    if state().as_json:
        echo_json({"account_id": account_id, **to_json(found)})
    else:
        click.echo(found.message, err=not found.ok)
    if not found.ok:
        sys.exit(1)


@accounts.command("remove")
@click.argument("account_id", type=ACCOUNT)
def remove(account_id: str) -> None:
    """Remove an account and its credentials; campaigns that need it are paused at their next request.

    Its callback URL is removed too. To change credentials, connect again instead, which keeps the URL.
    """

    async def work(engine: Outreach) -> Account:
        workspace_id = (await engine.accounts.get_anywhere(account_id)).workspace_id
        return await engine.accounts.remove(workspace_id, account_id, actor=actor())

    gone = with_engine(work)
    show({"id": gone.id, "workspace_id": gone.workspace_id, "provider": gone.provider, "removed": True})
    note(
        f"Its callback URL, …/webhooks/{gone.id}, is removed: what {gone.provider} still sends there is answered with "
        "404 and lost, STOPs too. A new account has another URL, which must be set at the provider. (To change "
        "credentials, connect without removing, which keeps the URL.)"
    )


@accounts.command("rekey")
def rekey() -> None:
    """Encrypt the secrets of accounts, webhooks and users with the newest key, also while servers run that know it.

    Before, add the new key in front of the old one where the key comes from. An interrupted run goes on when it is run
    again. Exits with 1 if something is left.
    """
    result = with_engine(lambda engine: engine.accounts.rekey(actor=actor()))
    if state().as_json:
        echo_json(to_json(result))
    else:
        click.echo(
            f"Secrets encrypted with the newest key: {result.rekeyed}; already before: {result.already_current}; "
            f"left: {result.left}."
        )
        if result.rekeyed and not result.left:
            note("The older keys are needed for backups that were made before, and for nothing else.")
        elif not result.left:
            note("Nothing needs an older key. To change the key, put a new one in front of it, and run this again.")
    if result.left:
        note("A server that encrypts with an older key made them meanwhile: restart it, and run this again.")
        sys.exit(1)


def _from_file(file: BinaryIO | None) -> Mapping[str, str]:
    if file is None:
        return {}
    raw = file.read(_LARGEST_FILE + 1)
    try:
        if len(raw) > _LARGEST_FILE:
            raise ValueError
        values = json.loads(raw)
    except ValueError:
        raise click.ClickException(f"{name_of(file)} is not a JSON object.") from None
    if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
        raise click.ClickException(f"{name_of(file)} must be one JSON object whose values are strings.")
    return values


def _from_options(given: Sequence[str], wanted: Sequence[CredentialField]) -> Mapping[str, str]:
    values = {}
    secrets = {field.name for field in wanted if field.secret}
    for option in given:
        name, separator, value = option.partition("=")
        if not separator:
            raise click.UsageError(f"--set {option!r} is not of the form NAME=VALUE.")
        if name in secrets:
            raise click.UsageError(
                f"{name} is a secret, and a command line is seen by others. Give it in a --file, or at the prompt."
            )
        values[name] = value
    return values


def _asked_for(wanted: Sequence[CredentialField], values: Mapping[str, str]) -> Mapping[str, str]:
    """Prompt for missing required values, at a terminal."""
    if state().as_json or not sys.stdin.isatty():
        return {}
    return {
        field.name: click.prompt(f"{field.name} ({field.description})", hide_input=field.secret, err=True)
        for field in wanted
        if field.required and field.name not in values
    }
