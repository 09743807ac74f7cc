from __future__ import annotations

from tests.sync.generate import TARGET, generated


def test_the_services_for_synchronous_code_are_those_of_the_asynchronous_engine() -> None:
    """After a change of a service, `make sync` writes outreach/sync/services.py anew."""
    assert TARGET.read_text("utf-8") == generated(), "outreach/sync/services.py is not up to date: run `make sync`"
