"""Accounts at carriers and voice providers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from outreach.protocols import CredentialField
from outreach_server.console import words
from outreach_server.console.access import Right
from outreach_server.console.context import Visit
from outreach_server.console.pages.set_up.inputs import Input
from outreach_server.console.pages.set_up.nouns import PAGE_SIZE, Cell, Listed, Noun, On, Result, Sent, SetUpAction, at

_PROVIDER: Final = "provider"
_CREDENTIAL: Final = "credentials."
_SECRETS: Final = "Secrets are encrypted, and never shown again."


class AccountsNoun(Noun):
    """The accounts."""

    name, title, one, right = "accounts", "Accounts", "account", Right.OWN
    columns = ("Provider", "State", "Callback address", "Changed")
    empty = "An account at a carrier or voice provider sends messages and places calls. There is none yet."

    def __init__(self) -> None:
        self.on_list = (
            SetUpAction(
                name="connect",
                label="Connect an account",
                command="accounts connect",
                fields=_new_fields,
                do=_connect,
                effect=_SECRETS,
                proof=True,
                primary=True,
            ),
        )
        self.on_one = (
            SetUpAction(
                name="check",
                label="Check it",
                command="accounts check",
                do=_check,
                primary=True,
            ),
            SetUpAction(
                name="callback",
                label="Check the callback address",
                command="accounts check",
                operation="checkCallback",
                do=_check_callback,
            ),
            SetUpAction(
                name="replace",
                label="Replace the credentials",
                command="accounts connect",
                fields=_fields_of,
                do=_connect,
                effect=_SECRETS,
                proof=True,
                done="The credentials are replaced. Callbacks signed with the earlier ones are accepted for 24 hours.",
            ),
            SetUpAction(
                name="remove",
                label="Remove this account",
                command="accounts remove",
                do=_remove,
                done="It is removed.",
                proof=True,
                typed=True,
                effect="Campaigns that need it pause. Its callback address ends: opt-outs that come there are lost.",
            ),
        )

    async def list(self, visit: Visit, after: str | None) -> Listed:
        """Return a page of the accounts, without secrets."""
        page = await visit.engine.accounts.list(visit.place.id, after=after, limit=PAGE_SIZE)
        return Listed(items=page.items, next=page.next)

    async def get(self, visit: Visit, identifier: str) -> Any:
        """Return an account without its secrets."""
        return await visit.engine.accounts.get(visit.place.id, identifier)

    def called(self, one: Any) -> str:
        """Return its provider, which a workspace has one account at."""
        return words.sentence_of(one.provider)

    async def cells(self, visit: Visit, items: Sequence[Any]) -> Sequence[Sequence[Cell]]:
        """Return what is known of each."""
        return [(_state(visit, one), one.callback_url or "", at(visit, one.updated_at)) for one in items]

    async def facts(self, visit: Visit, one: Any) -> Sequence[tuple[str, Cell]]:
        """Return the credentials that are no secret, and the address."""
        found: list[tuple[str, Cell]] = [("State", _state(visit, one)), ("Identifier", one.id)]
        secret = {field.name for field in _fields_at(visit, one.provider) if field.secret}
        found += [
            (words.sentence_of(name), "Set, and not shown" if name in secret else value)
            for name, value in one.credentials.items()
        ]
        found.append(("Callback address", one.callback_url or "None: the server has no public address (public_url)."))
        found.append(("Replies to STOP, START and HELP", "The provider" if one.replies_to_keywords else "This server"))
        if one.previous_accepted_until is not None:
            found.append(("Earlier credentials accepted until", at(visit, one.previous_accepted_until)))
        return [*found, ("Changed", at(visit, one.updated_at))]

    def is_begun(self, visit: Visit) -> bool:
        """Return whether a provider was chosen."""
        return _PROVIDER in visit.request.query_params

    async def filters(self, visit: Visit) -> Sequence[Input]:
        """Return the provider that the form is for."""
        choices = [(one.name, words.sentence_of(one.name)) for one in visit.engine.accounts.providers()]
        return [
            Input(name=_PROVIDER, label="Provider to connect", kind="choice", choices=choices, value=_provider(visit))
        ]


def _state(visit: Visit, one: Any) -> str:
    if one.problem is not None:
        return str(one.problem)
    if one.throttled_until is not None:
        until = visit.clocks().moment(one.throttled_until, visit.now)
        return f"Throttled by the provider until {until} ({visit.clocks().name})"
    return "Connected"


def _provider(visit: Visit) -> str:
    """Return the provider that a form of a new account is for."""
    known = [one.name for one in visit.engine.accounts.providers()]
    name = visit.form.get(_PROVIDER) or visit.request.query_params.get(_PROVIDER, "")
    return name if name in known else known[0]


async def _new_fields(on: On) -> Sequence[Input]:
    provider = _provider(on.visit)
    only = Input(
        name=_PROVIDER,
        label="Provider",
        kind="choice",
        choices=[(provider, words.sentence_of(provider))],
        hint="Choose another on.one above.",
        value=provider,
    )
    return [only, *_credentials(on.visit, provider, {})]


async def _fields_of(on: On) -> Sequence[Input]:
    return _credentials(on.visit, on.one.provider, on.one.credentials)


def _fields_at(visit: Visit, provider: str) -> Sequence[CredentialField]:
    """Return what an account at a provider needs; nothing where its adapter is not installed."""
    known = {one.name for one in visit.engine.accounts.providers()}
    return visit.engine.accounts.credential_fields(provider) if provider in known else ()


def _credentials(visit: Visit, provider: str, held: Mapping[str, str]) -> Sequence[Input]:
    return [
        Input(
            name=f"{_CREDENTIAL}{field.name}",
            label=words.sentence_of(field.name),
            kind="secret" if field.secret else "text",
            hint=field.description,
            required=field.required,
            longest=10_000,
            value="" if field.secret else held.get(field.name, ""),
        )
        for field in _fields_at(visit, provider)
    ]


async def _connect(sent: Sent) -> Result:
    provider = sent.values[_PROVIDER] if sent.one is None else sent.one.provider
    given = {
        name.removeprefix(_CREDENTIAL): value for name, value in sent.values.items() if name != _PROVIDER and value
    }
    account = await sent.engine.accounts.connect(sent.place, provider, given, actor=sent.actor)
    return Result(goes_to=account.id)


async def _check(sent: Sent) -> Result:
    found = await sent.engine.accounts.check(sent.place, sent.one.id)
    return Result(text=found.message, good=found.ok)


async def _check_callback(sent: Sent) -> Result:
    found = await sent.engine.accounts.check_callback(sent.place, sent.one.id)
    return Result(text=found.message, good=found.ok)


async def _remove(sent: Sent) -> Result:
    await sent.engine.accounts.remove(sent.place, sent.one.id, actor=sent.actor)
    return Result(goes_to="list")
