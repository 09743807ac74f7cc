from __future__ import annotations

import importlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from outreach.server_support import PUBLIC_URL_VARIABLE
from outreach.voice import base

GUIDES = Path(__file__).resolve().parents[2] / "docs" / "voice"
PROVIDERS = ("elevenlabs", "retell", "vapi")
ALL_GUIDES = pytest.mark.parametrize("guide", sorted(GUIDES.parent.glob("*/*.md")), ids=lambda path: path.stem)
"""Those of carriers too."""

MEANINGS: Final[Mapping[base.CallEnd, str]] = {
    base.ANSWERED_BY_PERSON: "somebody was talked to; the analysis is the verdict",
    base.MACHINE: "`voicemail`, tried again unless it got the message",
    base.MENU: "`voicemail`, tried again",
    base.TALKED_TO_MACHINE: "`voicemail`, which has what the agent said",
    base.NO_ANSWER: "`no_answer`, tried again",
    base.BUSY: "`busy`, tried again",
    base.DECLINED: "`declined`, tried again",
    base.DO_NOT_CALL: "`negative`, and onto the register",
    base.CANCELED: "canceled at the provider",
    base.INVALID_NUMBER: "failed, `invalid_number`",
    base.BLOCKED: "failed, `filtered`",
    base.BAD_SETUP: "failed, `bad_sender`; counts against the error budget",
    base.CAPACITY: "nobody was called, `rate_limited`, tried again",
    base.DAILY_LIMIT: "nobody was called, `rate_limited`, tried again; the account waits an hour",
    base.NOT_CONNECTED: "nobody was reached, `temporary`, tried again",
    base.FUNDS: "failed, `provider_funds`; the account's campaigns pause",
    base.FAILED_AT_PROVIDER: "failed, `provider_error`; not tried again, counts against the error budget",
}
"""What an end of a call leads to, in the words of the guides."""


def table(provider: str) -> list[str]:
    """Return the lines of a guide's table of reasons, as the adapter has them."""
    reasons = importlib.import_module(f"outreach.voice.{provider}.reasons")
    if provider == "elevenlabs":
        named = [
            *((f"`{name}`", end) for name, end in {**reasons.TWILIO, **reasons.FAILURES}.items()),
            *((f"SIP {code}", end) for code, end in reasons.SIP.items()),
        ]
    else:
        named = [(f"`{name}`", end) for name, end in reasons.ENDS.items()]
        named += [(f"…`{part}`…", end) for part, end in reasons.PARTS]
    rows = ["| what it leads to | reasons |", "|---|---|"]
    for end, meaning in MEANINGS.items():
        own = [name for name, its in named if its == end]
        if own:
            rows.append(f"| {meaning} | {', '.join(own)} |")
    return rows


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_table_of_reasons_is_the_adapters_own(provider: str) -> None:
    """A guide says of every reason what the adapter makes of it."""
    lines = (GUIDES / f"{provider}.md").read_text(encoding="utf-8").splitlines()
    expected = table(provider)
    start = lines.index(expected[0])
    assert lines[start : start + len(expected)] == expected
    assert lines[start + len(expected) :][:1] in ([], [""])


@ALL_GUIDES
def test_every_field_of_the_credentials_is_explained(guide: Path) -> None:
    """The example can be connected as it stands, but for its values, and the table has every field."""
    text = guide.read_text(encoding="utf-8")
    adapter: Any = importlib.import_module(f"outreach.{guide.parent.name}.{guide.stem}").ADAPTER
    (example,) = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    given = json.loads(example)
    assert {field.name for field in adapter.fields if field.required} <= set(given)
    assert set(given) <= {field.name for field in adapter.fields}
    rows = " ".join(line for line in text.splitlines() if line.strip().startswith("| `"))
    assert [field.name for field in adapter.fields if f"`{field.name}`" not in rows] == []


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_guide_has_every_step(provider: str) -> None:
    """Connect, check, the agent, the address of callbacks, and one call to oneself."""
    text = (GUIDES / f"{provider}.md").read_text(encoding="utf-8")
    for step in (
        f"accounts connect WORKSPACE_ID {provider} --file {provider}.json",
        "accounts check ACCOUNT_ID",
        f"--provider {provider} --provider-agent-id",
        "/webhooks/ACCOUNT_ID",
        "outreach-server serve\n",
        "test-send WORKSPACE_ID --agent AGENT_ID --to +",
    ):
        assert step in text, step


@ALL_GUIDES
def test_a_guide_says_where_the_server_is_before_anything_asks_for_it(guide: Path) -> None:
    """For the commands as for the server: what is only told to `serve` is unknown to `accounts`."""
    text = guide.read_text(encoding="utf-8")
    (block,) = (found for found in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) if "accounts connect" in found)
    first, *then = [line.strip() for line in block.strip().splitlines()]
    assert first == f"export {PUBLIC_URL_VARIABLE}=https://outreach.example.com"
    assert [" ".join(line.split()[1:3]) for line in then] == ["accounts connect", "accounts check"]
    assert text.index(first) < text.index("outreach-server serve\n")
    assert "--public-url" not in text
    assert "https://outreach.example.com/webhooks/ACCOUNT_ID" in text


def test_every_end_has_a_meaning() -> None:
    """No end of a call is left out of the guides' words."""
    assert set(MEANINGS) == {value for value in vars(base).values() if isinstance(value, base.CallEnd)}
