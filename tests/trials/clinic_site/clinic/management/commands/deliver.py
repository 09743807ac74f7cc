from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from clinic.models import Appointment
from outreach.events import CampaignStatusChanged, RecipientEnded
from outreach.sync import Outreach


class Command(BaseCommand):
    help = "Send what the site has committed, and keep what became of it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--until-completed", action="store_true", help="Return when a campaign is completed.")

    def handle(self, *args: Any, until_completed: bool, **options: Any) -> None:
        with (
            Outreach.open(settings.OUTREACH_DATABASE_URL, dispatch=True) as engine,
            engine.events.subscribe(RecipientEnded, CampaignStatusChanged, name="clinic", since=0) as stream,
        ):
            for event in stream:
                if isinstance(event, RecipientEnded) and event.external_id is not None:
                    key = event.external_id.removeprefix("appointment-")
                    Appointment.objects.filter(pk=key).update(reminder=event.reason or event.status)
                stream.ack()
                if until_completed and isinstance(event, CampaignStatusChanged) and event.status == "completed":
                    return
