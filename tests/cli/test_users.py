"""`outreach-server users`: people of the console."""

from __future__ import annotations

import uuid

import anyio
import pytest

from outreach import Outreach
from outreach.models import SignedIn
from tests.cli.conftest import Cli

EMAIL = "ann@acme.example"
PASSWORD = "seven blue herons"
NOBODY = str(uuid.UUID(int=7))


def token_of(document: dict[str, str]) -> str:
    """Return the token of a link that a command has shown."""
    base, _, token = document["link"].rpartition("/")
    assert base == "http://127.0.0.1:8000/console/invitation"
    return token


def accepted(cli: Cli, token: str) -> SignedIn:
    """Use a link, and sign in."""

    async def work() -> SignedIn:
        async with Outreach.open(cli.database) as engine:
            user = await engine.users.accept(token, password=PASSWORD)
            return await engine.sessions.sign_in(user.email, PASSWORD, address="192.0.2.7", agent="Firefox")

    return anyio.run(work)


def test_a_user_is_created_with_a_role_and_a_link(cli: Cli, workspace_id: str) -> None:
    """The link is shown once; the person chooses the password, which nobody else knows."""
    made = cli.ask("users", "create", "Ann@Acme.example", "--role", "owner", "--workspace", "Acme", "--name", "Ann")
    assert (made["email"], made["has_password"], made["operator"]) == (EMAIL, False, False)
    assert accepted(cli, token_of(made)).user.id == made["id"]
    [listed] = cli.ask("users", "list", workspace_id)
    assert (listed["role"], listed["has_password"]) == ("owner", True)
    assert not {"password", "totp", "link", "digest"} & set(listed)
    assert [one["email"] for one in cli.ask("users", "list")] == [EMAIL]
    assert "already" in cli.refuse("users", "create", EMAIL)
    told = cli.tell("users", "create", "op@acme.example", "--operator")
    assert "works once" in told


def test_an_invitation_is_shown_listed_and_withdrawn(cli: Cli, workspace_id: str) -> None:
    """The list has no link."""
    assert "no invitations" in cli.tell("users", "invite", workspace_id)
    made = cli.ask("users", "invite", workspace_id, "ben@acme.example", "--role", "agent")
    assert accepted(cli, token_of(made)).user.email == "ben@acme.example"
    other = cli.ask("users", "invite", workspace_id, "eve@acme.example")
    withdrawn = cli.ask("users", "invite", workspace_id, "--withdraw", other["id"])
    assert withdrawn["used_at"] is not None
    listed = cli.ask("users", "invite", workspace_id)
    assert [(one["email"], one["role"], one["used_at"] is None) for one in listed] == [
        ("ben@acme.example", "agent", False),
        ("eve@acme.example", "viewer", False),
    ]
    assert not {"link", "digest"} & set(listed[0])
    assert "not both" in cli.refuse("users", "invite", workspace_id, EMAIL, "--withdraw", other["id"], code=2)


def test_what_a_user_may_do_is_changed(cli: Cli, workspace_id: str) -> None:
    """By e-mail address or id; in the audit trail under the operator's name."""
    made = cli.ask("users", "create", EMAIL)
    changed = cli.ask("users", "role", EMAIL, "--workspace", workspace_id, "--role", "manager", "--operator")
    assert (changed["roles"], changed["operator"]) == ({workspace_id: "manager"}, True)
    newest = cli.ask("audit", workspace_id, "--limit", "1")[0]
    assert (newest["action"], newest["subject"], newest["detail"]) == ("user.role", made["id"], "manager")
    assert newest["actor"].startswith("cli:")
    changed = cli.ask("users", "role", made["id"], "--workspace", workspace_id, "--no-role", "--no-operator")
    assert (changed["roles"], changed["operator"]) == ({}, False)


@pytest.mark.parametrize(
    "wrong",
    [
        ["create", EMAIL, "--role", "owner"],
        ["role", EMAIL],
        ["role", EMAIL, "--workspace", "Acme"],
        ["role", EMAIL, "--workspace", "Acme", "--role", "owner", "--no-role"],
        ["role", EMAIL, "--workspace", "Acme", "--role", "admin"],
        ["sessions", EMAIL, "--end", NOBODY, "--end-all"],
    ],
)
def test_wrong_options_are_refused(cli: Cli, workspace_id: str, wrong: list[str]) -> None:
    """Before anything is changed."""
    cli.ask("users", "create", EMAIL)
    cli.refuse("users", *wrong, code=2)
    assert cli.ask("users", "list", workspace_id) == []


@pytest.mark.parametrize("command", ["role", "disable", "reset", "sessions"])
def test_an_unknown_user_is_reported_with_where_to_look(cli: Cli, workspace_id: str, command: str) -> None:
    """By address and by id."""
    more = ["--operator"] if command == "role" else []
    for user in ("nobody@acme.example", NOBODY):
        said = cli.refuse("users", command, user, *more)
        assert f"There is no user {user!r}. List them with: outreach-server users list" in said


def test_a_user_is_disabled_and_enabled(cli: Cli, workspace_id: str) -> None:
    """But not the last owner."""
    cli.ask("users", "create", EMAIL, "--role", "owner", "--workspace", workspace_id)
    assert "last owner" in cli.refuse("users", "disable", EMAIL)
    cli.ask("users", "create", "ben@acme.example", "--role", "owner", "--workspace", workspace_id)
    assert cli.ask("users", "disable", EMAIL)["disabled_at"] is not None
    assert cli.ask("users", "disable", EMAIL, "--enable")["disabled_at"] is None


def test_sessions_are_listed_and_ended(cli: Cli, workspace_id: str) -> None:
    """One, or all of them."""
    made = cli.ask("users", "create", EMAIL)
    assert "not signed in" in cli.tell("users", "sessions", EMAIL)
    first = accepted(cli, token_of(made))
    accepted(cli, token_of(cli.ask("users", "reset", EMAIL)))
    listed = cli.ask("users", "sessions", EMAIL)
    assert [(one["address"], one["agent"], one["ended_at"] is None) for one in listed] == [
        ("192.0.2.7", "Firefox", True),
        ("192.0.2.7", "Firefox", False),
    ]
    assert listed[1]["id"] == first.session.id
    assert "digest" not in listed[0]
    assert [one["ended_at"] is None for one in cli.ask("users", "sessions", EMAIL, "--end", listed[0]["id"])] == [
        False
    ] * 2
    accepted(cli, token_of(cli.ask("users", "reset", EMAIL)))
    assert {one["ended_at"] is None for one in cli.ask("users", "sessions", EMAIL, "--end-all")} == {False}
    assert "no session" in cli.refuse("users", "sessions", EMAIL, "--end", NOBODY)


def test_a_link_has_the_public_address(cli: Cli, monkeypatch: pytest.MonkeyPatch, workspace_id: str) -> None:
    """Where there is one."""
    monkeypatch.setenv("OUTREACH_PUBLIC_URL", "https://outreach.example.com")
    made = cli.ask("users", "create", EMAIL)
    assert made["link"].startswith("https://outreach.example.com/console/invitation/")
    reset = cli.ask("users", "reset", EMAIL, "--second-factor")
    assert reset["link_expires_at"] > made["created_at"]
