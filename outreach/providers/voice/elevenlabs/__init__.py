"""ElevenLabs Agents, over a Twilio number or a SIP trunk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from outreach.protocols.adapter import AccountCheck, Connection, CredentialField
from outreach.protocols.diagnosis import CallbackSetting
from outreach.protocols.voice import VoiceProvider
from outreach.providers.http.account_check import (
    API_BASE,
    api_base_problems,
    has_value_of,
    plain_text_problems,
    probe_account,
)
from outreach.providers.http.json_fields import text_at, value_at
from outreach.providers.voice import base
from outreach.providers.voice.elevenlabs import callbacks
from outreach.providers.voice.elevenlabs.provider import CONVERSATIONS, NAME, ElevenLabsVoice, api_of


class ElevenLabsAdapter:
    """ElevenLabs accounts."""

    name = NAME
    kind: Final = "voice"
    trunks_by_identifier = True
    replies_to_keywords = False
    max_callback_bytes = 512 * 1024
    """The report of half an hour of talk: its turns with their metrics, without sound."""
    fields: Sequence[CredentialField] = (
        CredentialField(
            name="api_key", description="An API key that may use Agents, from the dashboard under API Keys."
        ),
        CredentialField(name="webhook_secret", description="The secret that was shown when the webhook was made."),
        base.PHONE_NUMBER_ID,
        base.PHONE_NUMBERS,
        CredentialField(
            name="telephony",
            description="How the numbers are connected: twilio, which is the usual way, or sip_trunk.",
            secret=False,
            required=False,
        ),
        API_BASE,
    )
    read = staticmethod(callbacks.read)
    sign_callback = staticmethod(callbacks.sign)

    def problems(self, credentials: Mapping[str, str]) -> Sequence[str]:
        """Return what is wrong with credentials, one sentence each."""
        problems = [
            *api_base_problems(credentials),
            *plain_text_problems(credentials, ["api_key", "webhook_secret"]),
            *base.phone_number_problems(credentials),
        ]
        if credentials.get("telephony", "twilio") not in {"twilio", "sip_trunk"}:
            problems.append("telephony is twilio or sip_trunk.")
        return problems

    async def check(self, connection: Connection) -> AccountCheck:
        """List one conversation, which changes nothing."""
        request = api_of(connection).request("GET", CONVERSATIONS, params={"page_size": "1"})
        answer = await probe_account(
            connection, request, provider="ElevenLabs", fields=self.fields, expected=has_value_of(list, "conversations")
        )
        return answer if isinstance(answer, AccountCheck) else AccountCheck(ok=True, message=_ACCEPTED)

    async def callback_settings(
        self, connection: Connection, *, senders: Sequence[str], agents: Sequence[str]
    ) -> Sequence[CallbackSetting]:
        """List the webhooks of the ElevenLabs workspace, one of which has to have our URL."""
        listed = value_at(await api_of(connection).fetch("GET", "/v1/workspace/webhooks"), "webhooks")
        if not isinstance(listed, list):
            return []
        ours = [one for one in listed if text_at(one, "webhook_url") == connection.callback_url]
        off = bool(ours) and all(
            value_at(one, "is_disabled") is True or value_at(one, "is_auto_disabled") is True for one in ours
        )
        return [
            CallbackSetting(
                name="the webhooks of the workspace at ElevenLabs",
                url=connection.callback_url if ours else None,
                wrong="The webhook with our URL is disabled there." if off else None,
            )
        ]

    def connect(self, connection: Connection) -> VoiceProvider:
        """Return the account's voice provider."""
        return ElevenLabsVoice(connection)


_ACCEPTED: Final = "ElevenLabs accepts api_key. Only a callback can show whether webhook_secret is right."

ADAPTER: Final = ElevenLabsAdapter()
