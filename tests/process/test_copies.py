from __future__ import annotations

import shutil
from pathlib import Path

import attrs

from tests.process.books import Books
from tests.process.place import Place
from tests.process.test_command_line import prove_that_it_sends
from tests.process.waiting import wait_for

RECIPIENTS = 60
"""So many that a server is stopped in the midst, also where the machine is busy: 6 s at 600 a minute."""


def half_sent(place: Place) -> str:
    """Run a server until a campaign is half sent, stop it, and return the campaign."""
    (campaign,) = place.create(campaigns=1, recipients=RECIPIENTS)
    server = place.serve()
    wait_for("some messages", lambda: place.books.sent() >= 3)
    assert server.stop() == 0
    assert place.books.unfinished()
    return campaign


def at(place: Place, database: Path) -> Place:
    """Return the same place with another database."""
    return attrs.evolve(place, database=database, books=Books(database=database, log=place.books.log))


def test_a_copy_elsewhere_does_not_start_sending(place: Place) -> None:
    """A database that finds itself at another path pauses its campaigns as moved; resumed, they go on."""
    campaign = half_sent(place)
    elsewhere = place.directory / "elsewhere"
    elsewhere.mkdir()
    copy = at(place, Path(shutil.copy(place.database, elsewhere / "copy.db")))
    sent = place.books.sent()
    server = copy.serve()
    prove_that_it_sends(copy, server)
    assert place.books.sent() == sent + 1, "the campaign went on by itself"
    found = copy.books.campaigns()[campaign]
    assert (found["status"], found["pause_reason"]) == ("paused", "moved")
    copy.command("campaigns", "resume", campaign)
    wait_for("everybody", lambda: not copy.books.unfinished())
    copy.books.check_counters()
    assert copy.books.campaigns()[campaign]["status"] == "completed"


def test_a_restored_copy_does_not_start_sending(place: Place) -> None:
    """A database that is older than what was sent from it pauses its campaigns as restored; resumed, they go on."""
    (campaign,) = place.create(campaigns=1, recipients=20)
    backup = place.directory / "backup.db"
    shutil.copy(place.database, backup)
    server = place.serve()
    wait_for("some messages", lambda: place.books.sent() >= 3)
    assert server.stop() == 0
    shutil.copy(backup, place.database)
    sent = place.books.sent()
    server = place.serve()
    prove_that_it_sends(place, server)
    assert place.books.sent() == sent + 1, "the campaign went on by itself"
    found = place.books.campaigns()[campaign]
    assert (found["status"], found["pause_reason"]) == ("paused", "restored")
    place.command("campaigns", "resume", campaign)
    wait_for("everybody", lambda: not place.books.unfinished())
    place.books.check_counters()


def test_a_restart_at_the_same_place_goes_on_by_itself(place: Place) -> None:
    """A server that starts again where it was goes on without being asked."""
    half_sent(place)
    place.serve()
    wait_for("everybody", lambda: not place.books.unfinished())
    assert place.books.recipients() == {"completed": RECIPIENTS}
    place.books.check()
