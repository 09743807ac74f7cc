from __future__ import annotations

import datetime as dt
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from clinic import texts
from outreach import OutreachError


class Command(BaseCommand):
    help = "Remind the patients of a day by SMS."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("day", type=dt.date.fromisoformat)

    def handle(self, *args: Any, day: dt.date, **options: Any) -> str:
        try:
            campaign = texts.remind(day)
        except OutreachError as error:
            raise CommandError(str(error)) from error
        return f"{campaign.id}"
