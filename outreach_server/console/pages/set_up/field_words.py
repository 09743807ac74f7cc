"""The words of the fields of forms, by the field of the model: its label and its hint."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

FIELDS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "address": ("Address", "SIP host or URI at which the trunk ends."),
        "approve_over_amount": (
            "Approval of starts that cost more than",
            "In whole units of the currency of the prices. Empty: no such limit.",
        ),
        "approve_over_contacts": (
            "Approval of starts with more contacts than",
            "0: of every start. Empty: no such limit.",
        ),
        "allow_outbound": ("An inbound agent may call out", ""),
        "carrier": ("SMS carrier", "None: it is for calls only."),
        "concurrency": ("Deliveries at a time", "Of events about different things; others follow each other."),
        "contact_hours": ("Contact people only from 8 to 21, in their own time zones", ""),
        "custom_variables": ("Variables", "Names that lists may have as columns, one a line."),
        "default_region": ("Region of local numbers", "Two letters, such as US. Empty: international numbers only."),
        "description": ("Description", "What it is for."),
        "direction": ("Direction", "An inbound agent calls out only where that is allowed below."),
        "email": ("E-mail address", ""),
        "enabled": ("Answer STOP, START and HELP", "An opt-out counts in any case."),
        "footer_enabled": ("End campaign messages with the opt-out text", ""),
        "footer_text": ("Opt-out text", "Running campaigns use it from their next message on."),
        "frequency_cap": ("Messages and calls to one number in 24 hours", "Over all campaigns. Empty: no limit."),
        "from_number": ("Caller ID", "Empty: the provider's own."),
        "help_text": ("Answer to HELP", "Empty: the usual one."),
        "help_when_opted_out": ("Answer HELP of those who have opted out, too", ""),
        "holidays": ("On the holidays of the campaign", ""),
        "is_active": ("In use", "An agent that is not in use places no calls."),
        "late_hours": ("Hours that a missed run may be late", "Empty: it is left out."),
        "managers_export": ("Managers may export files with contacts and opt-outs", "Owners always may."),
        "max_call_seconds": ("Longest call, in seconds", "Empty: as the provider has it."),
        "max_cost": ("Most that a run may cost", "In whole units of the currency of the prices. Empty: no limit."),
        "max_segments": ("Longest message, in segments", ""),
        "mode": ("Mode", "A sandbox sends everything to the simulators. It cannot be changed later."),
        "most_amount": (
            "Most that a run may cost",
            "In whole units of the currency of the prices. Empty: it does not cover limits of cost.",
        ),
        "most_contacts": ("Most contacts of a run", ""),
        "name": ("Name", ""),
        "not_again_within_days": ("Leave out whom a run has reached within so many days", "Empty: nobody."),
        "operator": ("Operates the server: every right in every workspace", ""),
        "overlap": ("While the run before has not ended", ""),
        "overlap_hours": ("Hours in which the one before is valid too", ""),
        "payload": ("What deliveries hold", ""),
        "phone": ("Number", "In any notation, such as +14155550102."),
        "placeholders": ("Variables that it accepts", "One a line. Empty: any."),
        "provider": ("Provider", "In a sandbox, all calls are simulated."),
        "provider_agent_id": ("Its identifier at the provider", ""),
        "provider_trunk_id": ("Its identifier at the voice provider", ""),
        "rate_per_minute": ("Messages a minute", "Over all campaigns, at once. Empty: no limit of its own."),
        "request_limit": ("Requests of programs a minute", "Empty: no limit."),
        "retention_days": ("Erase contacts and texts after so many days", "Counted from their end. Empty: never."),
        "retry_delay_minutes": ("Minutes between attempts", ""),
        "retry_enabled": ("Send failed messages again", ""),
        "retry_max_attempts": ("Attempts, the first included", ""),
        "role": ("Role", ""),
        "skip_unreachable": ("Leave out numbers that a provider reported as unreachable", ""),
        "sms_campaigns_enabled": ("SMS campaigns may be made", ""),
        "start_text": ("Answer to START", "Empty: the usual one."),
        "status": ("Status", "Nothing is sent from a workspace that is not active."),
        "stop_text": ("Answer to STOP", "Empty: the usual one."),
        "trunk_id": ("Trunk", ""),
        "types": ("Events", "None chosen: all, those of later versions too."),
        "url": ("URL", "Such as https://example.com/hooks."),
        "voicemail": ("When a machine answers", "None: as the provider has it."),
        "voicemail_message": ("What to say to the machine", "Only where a message is left."),
    }
)
