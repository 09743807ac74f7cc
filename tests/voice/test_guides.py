from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from outreach.providers.voice import base
from outreach.server_support import PUBLIC_URL_VARIABLE
from tests.reference.codes import MEANINGS, VOICE_PROVIDERS

GUIDES = Path(__file__).resolve().parents[2] / "docs" / "voice"
ALL_GUIDES = pytest.mark.parametrize(
    "guide", sorted([*GUIDES.parent.glob("carriers/*.md"), *GUIDES.glob("*.md")]), ids=lambda path: path.stem
)
"""Those of carriers too."""


@ALL_GUIDES
def test_every_field_of_the_credentials_is_explained(guide: Path) -> None:
    """The example can be connected as it stands, but for its values, and the table has every field."""
    text = guide.read_text(encoding="utf-8")
    adapter: Any = importlib.import_module(f"outreach.providers.{guide.parent.name}.{guide.stem}").ADAPTER
    (example,) = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    given = json.loads(example)
    assert {field.name for field in adapter.fields if field.required} <= set(given)
    assert set(given) <= {field.name for field in adapter.fields}
    rows = " ".join(line for line in text.splitlines() if line.strip().startswith("| `"))
    assert [field.name for field in adapter.fields if f"`{field.name}`" not in rows] == []


@pytest.mark.parametrize("provider", VOICE_PROVIDERS)
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
    """No end of a call is left out of the reference."""
    assert set(MEANINGS) == {value for value in vars(base).values() if isinstance(value, base.CallEnd)}
