from __future__ import annotations

from pathlib import Path

import pytest

from tests.trials.running import check_types, run

SCRIPTS = ["platform_team.py", "ticket_shop.py", "book_club.py"]


def test_a_platform_team_gets_by_without_a_fork(tmp_path: Path) -> None:
    """Its own carrier and dispatcher, over HTTP with its own identities, and each contact is billed once."""
    assert run("platform_team.py", tmp_path) == [
        *("401 201 ready", "401 201 ready"),
        *("403", "204"),
        "50 messages, 50 billed: completed",
    ]


def test_a_shop_on_fastapi_sells_tickets(tmp_path: Path) -> None:
    """It mounts the interface behind its own sessions, confirms orders once, and keeps its own books of outcomes."""
    assert run("ticket_shop.py", tmp_path) == [
        "signed out: 401 401",
        "order: 201, again the same: True",
        "wrong number: 400 to is not a phone number; write it like +14155550102",
        "campaign over HTTP: 201 ready",
        "after a restart: 3 reached, campaign completed",
    ]


def test_a_book_club_on_flask_writes_to_its_members(tmp_path: Path) -> None:
    """Without a line of asyncio: members from its own database, a pause from another thread, who opted out."""
    assert run("book_club.py", tmp_path) == [
        "invited: 40, left out: 1",
        "paused and resumed: paused active",
        "twice with one key: True",
        "refused: 400 Hi {{nickname}}",
        "ended: completed, 40 of 40",
    ]


@pytest.mark.parametrize("script", SCRIPTS)
def test_its_program_is_typed(script: str, tmp_path: Path) -> None:
    """Under `mypy --strict`."""
    check_types(script, tmp_path)
