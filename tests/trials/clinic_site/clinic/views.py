from __future__ import annotations

import datetime as dt
import json

from django.db import transaction
from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from outreach import InvalidRequest

from . import texts
from .models import Appointment


@csrf_exempt
def book(request: HttpRequest) -> JsonResponse:
    given = json.loads(request.body)
    try:
        with transaction.atomic():
            appointment = Appointment.objects.create(
                patient=given["patient"],
                phone=given["phone"],
                day=dt.date.fromisoformat(given["day"]),
                at=given["at"],
            )
            texts.confirm(appointment)
    except InvalidRequest as error:
        # The appointment is kept: its commit came first.
        return JsonResponse({"error": str(error)}, status=422)
    return JsonResponse({"id": appointment.pk}, status=201)


def reminders(request: HttpRequest, campaign_id: str) -> JsonResponse:
    campaign = texts.engine.campaigns.get(texts.workspace_id(), campaign_id)
    return JsonResponse({"status": campaign.status, "sent": campaign.counters.completed})
