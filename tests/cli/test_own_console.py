"""`serve` with the console, and the link of the first-run set-up."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest

from outreach import Outreach
from outreach_server.app import create_app
from outreach_server.cli.serving.own_console import mount_console
from tests import postgres
from tests.cli.conftest import Cli, Start


def test_the_first_start_prints_a_link_that_works_once(start: Start, cli: Cli) -> None:
    """Each start another one, and none once there is a user."""
    first = start("serve", "--port", "0", "--json").document()
    assert first["console_url"] == f"{first['url']}/console"
    second = start("serve", "--port", "0", "--no-dispatch", "--json").document()
    assert first["setup_url"] != second["setup_url"]
    address, _, token = second["setup_url"].partition("#")
    with httpx.Client(base_url=second["url"], trust_env=False) as client:
        page = client.get(address)
        form_token = re.search(r'name="token" value="(\w+)"', page.text)
        assert form_token is not None
        form = {"token": form_token[1], "name": "Ann", "email": "ann@acme.example", "password": "seven blue herons"}
        answer = client.post(address, data={**form, "setup_token": token}, headers={"sec-fetch-site": "same-origin"})
        assert answer.status_code == 303, answer.text
        assert client.get(answer.headers["location"]).status_code == 200
        assert client.get("/campaigns").status_code == 401
    with httpx.Client(base_url=first["url"], trust_env=False, cookies=client.cookies) as other:
        assert other.get("/console/account").status_code == 200
        assert cli.ask("users", "sessions", "ann@acme.example", "--end-all")
        assert other.get("/console/account").status_code == 303
    third = start("serve", "--port", "0", "--no-dispatch", "--json").document()
    assert (third["setup_url"], third["console_url"]) == (None, f"{third['url']}/console")


def test_the_console_is_switched_off(start: Start) -> None:
    """Then there is no link either."""
    found = start("serve", "--port", "0", "--no-console", "--json").document()
    assert (found["setup_url"], found["console_url"]) == (None, None)
    assert httpx.get(f"{found['url']}/console/login", trust_env=False).status_code == 404


def test_people_read_the_link(start: Start) -> None:
    """On stderr, beside the address."""
    server = start("serve", "--port", "0", OUTREACH_PUBLIC_URL="https://outreach.example.com")
    server.says("Set the console up within an hour: https://outreach.example.com/console/setup#")


def test_without_a_usable_key_there_is_no_console(start: Start) -> None:
    """Its start says why and what to do, instead of pages that fail later."""
    server = start("serve", "--port", "0", "--json", OUTREACH_SECRET_KEY="no key")
    found = server.document()
    assert (found["setup_url"], found["console_url"]) == (None, None)
    server.says("No console, because its forms need a secret key.")
    assert httpx.get(f"{found['url']}/console/login", trust_env=False).status_code == 404


def test_a_server_whose_key_was_lost_makes_no_other_one(start: Start, tmp_path: Path) -> None:
    """Its start says what to do, instead of another key that opens nothing."""
    url = f"sqlite:///{tmp_path}/lost.db"
    file = tmp_path / "lost.db.key"
    lost = Cli(url)
    workspace = lost.ask("workspaces", "create", "Acme")["id"]
    lost.ask("webhooks", "add", workspace, "https://app.example/hook")
    file.unlink()
    server = start("serve", "--port", "0", "--json", OUTREACH_DATABASE_URL=url)
    assert server.document()["console_url"] is None
    server.says("Give the key that they were encrypted with")
    assert not file.exists()


@pytest.mark.anyio
async def test_the_console_is_shown_after_a_loss_of_the_key(tmp_path: Path) -> None:
    """Also where no page was opened before: people pause campaigns there."""
    url = f"sqlite:///{tmp_path}/test.db"
    async with Outreach.open(url) as first, Outreach.open(url) as served:
        app = create_app(engine=served)
        assert not mount_console(app, first)
        key = tmp_path / "test.db.key"
        key.unlink()
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            assert (await client.get("/console/login")).status_code == 200
        assert not key.exists()


def test_a_server_of_postgresql_without_a_key_says_so(start: Start) -> None:
    """Nothing beside the database can hold a key of its own, so there is no console until one is given."""
    served = start("serve", "--port", "0", "--json", OUTREACH_DATABASE_URL=postgres.empty_database())
    assert served.document()["console_url"] is None
    served.says("No console, because its forms need a secret key.")
    served.says("set OUTREACH_SECRET_KEY")
