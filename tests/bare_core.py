"""What the engine does where no extra is installed: run as a script there, and by tests/test_extras.py.

It sends a small campaign on the simulator, asks for what each extra brings, and ends with 0 where everything was as
`EXPECTED` has it, above all the errors that name what is missing.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import redirect_stderr
from importlib import import_module
from io import StringIO
from typing import Any, Final

from outreach import ConfigError, NewSmsCampaign, NewWorkspace, Outreach
from outreach.http import parse_holidays

EXPECTED: Final = {
    "campaign": ("completed", 3),
    "keyword": "start",
    "fields": "api_key",
    "providers": "Connecting a twilio account needs cryptography, httpx and PyJWT: pip install 'outreach[providers]'",
    "holidays": "A holiday calendar with a country needs holidays: pip install 'outreach[holidays]'",
    "testing": "outreach.testing needs h11 and pytest: pip install 'outreach[testing]'",
    "metrics": "outreach.integrations.prometheus needs prometheus-client: pip install 'outreach[metrics]'",
    "tracing": "outreach.integrations.opentelemetry needs opentelemetry-api: pip install 'outreach[otel]'",
    "server": "outreach_server.create_app needs starlette: pip install 'outreach[server]'",
    "command": "Error: outreach-server serve needs rich: pip install 'outreach[server]'\n",
    "loaded": set(),
}


async def send_campaign(engine: Outreach, workspace_id: str) -> tuple[str, int]:
    """Send one small campaign; return how it ended."""
    new = NewSmsCampaign(
        name="Spring",
        body="Hi {{first_name}}!",
        carrier="twilio",
        from_number="+14155550199",
        rate_per_minute=600,
    )
    people = [{"phone_number": f"(415) 555-01{at:02}", "first_name": "Ada"} for at in range(3)]
    created = await engine.campaigns.create_sms(workspace_id, new, people)
    running = await engine.campaigns.start(workspace_id, created.campaign.id)
    async with asyncio.timeout(60):
        while not running.is_terminal:
            await asyncio.sleep(0.05)
            running = await engine.campaigns.get(workspace_id, running.id)
    return running.status, running.counters.successful


async def use_engine() -> dict[str, Any]:
    """Use the engine as far as it goes without extras."""
    async with Outreach.open("memory://", dispatch=True) as engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="Acme", default_region="US"))
        found: dict[str, Any] = {"campaign": await send_campaign(engine, workspace.id)}
        received = await engine.messages.receive(
            workspace.id,
            from_number="+14155550101",
            to="+14155550199",
            body="START",
            provider="twilio",
            replies_to_keywords=True,
        )
        assert received is not None
        found["keyword"] = received.keyword
        found["fields"] = engine.accounts.credential_fields("vonage")[0].name
        try:
            await engine.accounts.connect(workspace.id, "twilio", {"account_sid": "AC1", "auth_token": "secret"})
        except ConfigError as error:
            found["providers"] = error.message
    return found


def main() -> None:
    """Compare what is found with what is expected."""
    found = asyncio.run(use_engine())
    try:
        parse_holidays({"country": "GB"}, this_year=2026)
    except ConfigError as error:
        found["holidays"] = error.message
    try:
        import outreach.testing  # noqa: F401
    except ConfigError as error:
        found["testing"] = error.message
    for name, module in (("metrics", "prometheus"), ("tracing", "opentelemetry")):
        try:
            import_module(f"outreach.integrations.{module}")
        except ConfigError as error:
            found[name] = error.message
    try:
        from outreach_server import create_app  # noqa: F401
    except ImportError as error:
        found["server"] = str(error)
    errors = StringIO()
    try:
        from outreach_server.cli import main as command

        with redirect_stderr(errors):
            command(["serve"], prog_name="outreach-server")
    except SystemExit:
        found["command"] = errors.getvalue()
    heavy = {"starlette", "uvicorn", "rich", "yaml", "httpx", "cryptography", "holidays", "jwt"}
    found["loaded"] = heavy & set(sys.modules)
    wrong = {name: found.get(name) for name in EXPECTED if found.get(name) != EXPECTED[name]}
    if wrong:
        sys.exit(f"Not as expected: {wrong}")


if __name__ == "__main__":
    main()
