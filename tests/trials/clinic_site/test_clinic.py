from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from outreach import NewWorkspace

if TYPE_CHECKING:
    from django.test import Client


@pytest.fixture(scope="session", autouse=True)
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    os.environ["CLINIC_DATA"] = str(tmp_path_factory.mktemp("clinic"))
    os.environ["DJANGO_SETTINGS_MODULE"] = "clinic.settings"
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", run_syncdb=True, verbosity=0)
    from clinic import texts
    from clinic.models import Tenant

    Tenant.objects.create(
        workspace_id=texts.engine.workspaces.create(NewWorkspace(name="Clinic", default_region="US")).id
    )
    yield
    texts.engine.close()


@pytest.fixture
def client() -> Client:
    from django.test import Client

    return Client()


def test_a_booking_is_confirmed(client: Client) -> None:
    from clinic import texts
    from clinic.models import Appointment

    given = {"patient": "Ada", "phone": "(212) 555-0101", "day": "2030-01-02", "at": "09:00"}
    answer = client.post("/book", given, content_type="application/json")
    assert answer.status_code == 201, answer.content
    wrong = client.post("/book", {**given, "phone": "no"}, content_type="application/json")
    assert (wrong.status_code, wrong.json()) == (
        422,
        {"error": "to: is not a phone number; write it like +14155550102"},
    )
    booked = Appointment.objects.get(pk=answer.json()["id"])
    message = texts.engine.messages.get(texts.workspace_id(), booked.message_id)
    assert (message.to, message.status) == ("+12125550101", "queued")


def test_reminders_go_out_and_come_back(client: Client) -> None:
    from clinic import texts
    from clinic.models import Appointment
    from django.core.management import call_command

    texts.engine.unsubscribes.add(texts.workspace_id(), "+12125550103")
    for n in range(4):
        Appointment.objects.create(patient=f"P{n}", phone=f"(212) 555-010{n}", day="2030-02-03", at="10:00")
    campaign = call_command("remind", "2030-02-03")
    assert call_command("remind", "2030-02-03") == campaign
    assert client.get(f"/reminders/{campaign}").json() == {"status": "active", "sent": 0}
    call_command("deliver", until_completed=True)
    assert client.get(f"/reminders/{campaign}").json() == {"status": "completed", "sent": 3}
    assert [one.reminder for one in Appointment.objects.filter(day="2030-02-03")] == ["completed"] * 3 + [""]


def test_nobody_to_remind() -> None:
    from django.core.management import CommandError, call_command

    with pytest.raises(CommandError, match="recipients: must have at least 1 element"):
        call_command("remind", "2031-01-01")
