"""Creates a campaign twice under one key by the client that openapi-generator makes for Python, and lists it."""

from __future__ import annotations

import json
import sys

from openapi_client import ApiClient, Configuration, SmsCampaignsApi
from openapi_client.models import (
    BusinessHoursBySchedule,
    BusinessHoursRequest,
    Carrier,
    Recipient,
    SmsCampaignCreate,
    WeekSchedule,
    Window,
)

url, key = sys.argv[1:3]
campaigns = SmsCampaignsApi(ApiClient(Configuration(host=url, access_token=key)))
schedule = WeekSchedule(monday=[Window(start="09:00", end="17:00")])
campaign = SmsCampaignCreate(
    name="By Python",
    message_body="Hi {{first_name}}",
    sms_carrier=Carrier.TWILIO,
    sms_from_number="+14155550100",
    recipients=[Recipient(phone_number="+14155550132", first_name="Ana", external_id="crm-7")],
    business_hours_config=BusinessHoursRequest(BusinessHoursBySchedule(timezone="Europe/Lisbon", schedule=schedule)),
)
first, again = (campaigns.create_sms_campaign(campaign, idempotency_key="by-python") for _ in range(2))
listed = campaigns.list_sms_campaigns(search="By Python")
hours = first.business_hours_config
sys.stdout.write(json.dumps([str(first.id), str(again.id), *[str(one.id) for one in listed.data], hours.timezone]))
