from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.server.conftest import Service, Tenant
from tests.server.test_errors import check_envelope

DEFAULTS = {
    "footer_enabled": True,
    "footer_text": "Reply STOP to opt out",
    "max_segments": 5,
    "retry_enabled": False,
    "retry_max_attempts": 3,
    "retry_delay_minutes": 15,
    "custom_variables": [],
}


def test_settings_before_any_change(tenant: Tenant) -> None:
    """docs/interface.md#settings; an empty object changes nothing."""
    answer = tenant.patch("/sms/settings", {})
    assert (answer.status_code, answer.json()) == (200, DEFAULTS)


def test_only_what_is_sent_changes(tenant: Tenant) -> None:
    """docs/interface.md#4.4: all settings are answered, those not sent as they were."""
    changed = {"footer_text": "", "custom_variables": ["plan", "plan"], "retry_delay_minutes": 120}
    assert tenant.patch("/sms/settings", changed).json() == DEFAULTS | changed
    assert tenant.patch("/sms/settings", {"footer_enabled": False}).json() == DEFAULTS | changed | {
        "footer_enabled": False
    }


def test_a_wrong_change_changes_nothing(tenant: Tenant) -> None:
    """docs/interface.md#4.4: unknown fields and out-of-range values are rejected with 400."""
    answer = tenant.patch("/sms/settings", {"max_segments": 1, "retry_max_attempts": 9, "unknown": 1})
    error = check_envelope(answer, 400, "invalid_request")
    assert {detail["path"] for detail in error["details"]} == {"retry_max_attempts", "unknown"}
    assert tenant.patch("/sms/settings", {}).json() == DEFAULTS


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
