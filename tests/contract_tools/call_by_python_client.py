"""Call every operation of a running server by the client that openapi-python-client makes; print what came of each.

Runs in the environment of that client: `python call_by_python_client.py URL API_KEY AGENT_ID`.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from outbound_calling_and_sms_campaigns_client import AuthenticatedClient, models
from outbound_calling_and_sms_campaigns_client.api.calls import create_call, get_call
from outbound_calling_and_sms_campaigns_client.api.campaigns import create_campaign, list_campaigns
from outbound_calling_and_sms_campaigns_client.api.sms import send_sms, update_sms_settings
from outbound_calling_and_sms_campaigns_client.api.sms_campaigns import create_sms_campaign, list_sms_campaigns

STATUSES: dict[str, int] = {}


def note(operation: str, answer: Any) -> Any:
    """Keep the status of an answer and return what the client read from it."""
    STATUSES[operation] = int(answer.status_code)
    assert answer.parsed is not None, f"{operation}: {answer.content!r}"
    return answer.parsed


def main(url: str, key: str, agent: str) -> None:
    """Call them one after the other."""
    with AuthenticatedClient(base_url=url, token=key, raise_on_unexpected_status=True, timeout=30) as client:
        variables = models.CallCreateVariables.from_dict({"first_name": "Ana", "invoices": [3, None]})
        call = models.CallCreate(agent_id=UUID(agent), to="+14155550121", variables=variables)
        placed = note("createCall", create_call.sync_detailed(client=client, body=call))
        record = note("getCall", get_call.sync_detailed(placed.call_id, client=client))
        assert (record.to, record.variables["invoices"]) == ("+14155550121", "[3,null]")

        fields: dict[str, Any] = {
            "name": "By openapi-python-client",
            "message_body": "Hi {{first_name}}",
            "sms_carrier": models.Carrier.VONAGE,
            "sms_from_number": "+14155550100",
            "schedule_type": models.ScheduleType.SCHEDULED,
            "scheduled_start_at": datetime(2027, 12, 1, 9, tzinfo=UTC),
            "recipients": [models.Recipient(phone_number="+14155550122", first_name="Ana")],
            "business_hours_config": models.BusinessHoursForDays(
                timezone="Europe/Lisbon", days=["mon", "Tuesday"], start="09:00", end="17:00"
            ),
            "holidays_config": models.HolidayCalendar(country=models.Country.GB, subdivision="ENG"),
        }
        campaign = models.SmsCampaignCreate(**fields)
        created = note("createSmsCampaign", create_sms_campaign.sync_detailed(client=client, body=campaign))
        assert (created.status, created.sms_carrier) == (models.CampaignStatus.READY, models.Carrier.VONAGE)
        assert created.holidays_config.holidays[0].date.year >= datetime.now(UTC).year
        listed = note(
            "listSmsCampaigns",
            list_sms_campaigns.sync_detailed(client=client, status=models.CampaignStatus.READY, search="python-client"),
        )
        assert [one.id for one in listed.data] == [created.id]

        calling = models.CallCampaignCreate(
            agent_id=UUID(agent),
            name="Calls by openapi-python-client",
            recipients=[models.Recipient(phone_number="+14155550123")],
        )
        called = note("createCampaign", create_campaign.sync_detailed(client=client, body=calling))
        assert called.agent.id == agent
        texting = models.SmsCampaignCreateByChannel(**fields, channel="sms")
        note("createCampaign", create_campaign.sync_detailed(client=client, body=texting))
        both = note("listCampaigns", list_campaigns.sync_detailed(client=client, search="python-client", page_size=2))
        assert (len(both.data), both.pagination.total) == (2, 3)

        change = models.SmsSettingsUpdate(footer_text="Reply STOP")
        assert note("updateSmsSettings", update_sms_settings.sync_detailed(client=client, body=change)).max_segments
        message = models.SmsSend(to="+14155550124", body="Your table is ready.")
        assert note("sendSms", send_sms.sync_detailed(client=client, body=message)).segments == 1

        refused = send_sms.sync_detailed(client=client, body=models.SmsSend(to="1", body="x"))
        assert refused.parsed.error.details[0].path == "to"
    sys.stdout.write(json.dumps(STATUSES))


if __name__ == "__main__":
    main(*sys.argv[1:])
