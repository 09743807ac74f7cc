"""The fixed values of the interface for SMS carriers and campaign options."""

from __future__ import annotations

from typing import Final, Literal

CarrierName = Literal["twilio", "telnyx", "vonage"]
CARRIERS: Final[tuple[CarrierName, ...]] = ("twilio", "telnyx", "vonage")
"""`<carrier_1>`, `<carrier_2>` and `<carrier_3>` of the interface, in this order."""

Channel = Literal["sms", "call"]
ScheduleType = Literal["immediate", "scheduled"]
SmsMode = Literal["one_way", "conversational"]
SmsMessageSource = Literal["custom", "flow"]
CliMode = Literal["default", "group"]
