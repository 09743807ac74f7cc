from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.server.conftest import Service

DEFAULTS = {
    "footer_enabled": True,
    "footer_text": "Reply STOP to opt out",
    "max_segments": 5,
    "retry_enabled": False,
    "retry_max_attempts": 3,
    "retry_delay_minutes": 15,
    "custom_variables": [],
}


def test_changes_at_the_same_time_are_all_kept(service: Service) -> None:
    """Changes of different fields do not undo each other."""
    tenant = service.tenant()
    changes: list[dict[str, object]] = [
        {"footer_enabled": False}, {"footer_text": "x"}, {"max_segments": 2}, {"retry_enabled": True},
        {"retry_max_attempts": 1}, {"retry_delay_minutes": 7}, {"custom_variables": ["a"]},
    ]  # fmt: skip
    with ThreadPoolExecutor(7) as pool:
        answers = list(pool.map(lambda change: tenant.patch("/sms/settings", change), changes))
    assert [answer.status_code for answer in answers] == [200] * 7
    final = tenant.patch("/sms/settings", {}).json()
    assert all(final[name] == value for change in changes for name, value in change.items())
