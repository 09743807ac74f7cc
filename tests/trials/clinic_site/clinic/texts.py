"""The engine of this process, and what the clinic asks of it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from functools import partial

from django.conf import settings
from django.db import transaction

from outreach import Campaign, NewMessage, NewRecipient, NewSmsCampaign
from outreach.errors import RecipientUnsubscribed
from outreach.sync import Outreach

from .models import Appointment, Tenant

engine = Outreach.open(settings.OUTREACH_DATABASE_URL)


def workspace_id() -> str:
    return Tenant.objects.get().workspace_id


def confirm(appointment: Appointment) -> None:
    """Confirm an appointment by SMS once it is committed."""
    transaction.on_commit(partial(_send, appointment))


def _send(appointment: Appointment) -> None:
    message = NewMessage(
        to=appointment.phone,
        body=f"Hello {appointment.patient}, see you on {appointment.day:%d %B} at {appointment.at}.",
        from_number=settings.OUTREACH_SENDER,
        carrier="twilio",
    )
    try:
        sent = engine.messages.send(workspace_id(), message, idempotency_key=f"appointment-{appointment.pk}")
    except RecipientUnsubscribed:
        return
    Appointment.objects.filter(pk=appointment.pk).update(message_id=sent.id)


def patients(day: dt.date) -> Iterator[NewRecipient]:
    for one in Appointment.objects.filter(day=day).order_by("pk").iterator():
        yield NewRecipient(
            phone_number=one.phone,
            first_name=one.patient,
            custom_variables={"at": one.at},
            external_id=f"appointment-{one.pk}",
        )


def remind(day: dt.date) -> Campaign:
    """Remind the patients of a day, once however often it is asked for."""
    campaign = NewSmsCampaign(
        name=f"Reminders {day}",
        body="{{first_name}}, we expect you tomorrow at {{at}}.",
        carrier="twilio",
        from_number=settings.OUTREACH_SENDER,
        rate_per_minute=600,
    )
    created = engine.campaigns.create_sms(workspace_id(), campaign, patients(day), idempotency_key=f"reminders-{day}")
    if created.campaign.status != "ready":
        return created.campaign
    return engine.campaigns.start(workspace_id(), created.campaign.id)
