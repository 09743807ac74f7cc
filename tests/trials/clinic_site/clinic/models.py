from __future__ import annotations

import datetime as dt
from typing import ClassVar

from django.db import models


class Tenant(models.Model):
    """The clinic's workspace in the engine."""

    workspace_id: models.CharField[str, str] = models.CharField(max_length=64)

    objects: ClassVar[models.Manager[Tenant]] = models.Manager()


class Appointment(models.Model):
    patient: models.CharField[str, str] = models.CharField(max_length=100)
    phone: models.CharField[str, str] = models.CharField(max_length=32)
    day: models.DateField[dt.date, dt.date] = models.DateField()
    at: models.CharField[str, str] = models.CharField(max_length=5)
    message_id: models.CharField[str, str] = models.CharField(max_length=64, default="")
    reminder: models.CharField[str, str] = models.CharField(max_length=32, default="")

    objects: ClassVar[models.Manager[Appointment]] = models.Manager()
