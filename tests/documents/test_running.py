"""Every page works as it is printed: its blocks are run in their order, as a reader would."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import anyio
import pytest

from outreach import NewAgent, NewNumber, NewRecipient, NewSmsCampaign, NewWorkspace, Outreach
from outreach.models import API_SCOPES
from tests.documents.blocks import PAGES, PYTHON, ROOT, SHELL, blocks, blocks_of
from tests.documents.session import Session
from tests.documents.stand_ins import GIVEN

RUN: Final = [
    page for page in PAGES if any(block.language in PYTHON | SHELL and block.not_run is None for block in blocks(page))
]
CONTACTS: Final = "Mobile,First name,Plan\n+14155550102,Ada,Comfort\n+14155550103,Grace,Basic\n"


pytestmark = pytest.mark.soak("each page runs its commands, many of which start servers")
_LEFT: Final = pytest.mark.nightly("each page runs its commands, many of which start servers")


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    """Return a directory with a database that knows somebody, and a list of contacts."""
    found = Session(place=tmp_path)
    found.begin()
    (tmp_path / "contacts.csv").write_text(CONTACTS, encoding="utf-8")
    given = anyio.run(furnish, tmp_path / "outreach.db")
    (tmp_path / GIVEN).write_text(json.dumps(given), encoding="utf-8")
    try:
        yield found
    finally:
        found.end()


async def furnish(path: Path) -> dict[str, str]:
    """Make a database with one of everything that a page may name, and return what has no list to be found in."""
    async with Outreach.open(f"sqlite:///{path}") as engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="Documentation", default_region="US"))
        await engine.agents.create(workspace.id, NewAgent(name="Ann", from_number="+14155550199"))
        await engine.numbers.create(workspace.id, NewNumber(phone="+14155550199", carrier="twilio"))
        campaign = NewSmsCampaign(
            name="Documented", body="Hi {{first_name}}", carrier="twilio", from_number="+14155550199"
        )
        people = [NewRecipient(phone_number="+14155550102", first_name="Ada")]
        await engine.campaigns.create_sms(workspace.id, campaign, people)
        key = await engine.api_keys.create(workspace.id, scopes=API_SCOPES)
    return {"API_KEY": key.api_key, "PHONE": "+14155550102"}


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=str(page.relative_to(ROOT)), marks=() if page == ROOT / "README.md" else _LEFT)
        for page in RUN
    ],
)
def test_a_page_works_as_it_is_printed(page: Path, session: Session) -> None:
    """From the top to the end, in one directory."""
    for block in blocks(page):
        session.run(block)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("```sh\nfalse\necho unreached\n```", "page.md:1 does not work"),
        ("```sh\noutreach-server campaigns show TRUNK_ID\n```", "nothing that TRUNK_ID could stand for"),
        ("```python\nimport outreach\noutreach.nothing\n```", "AttributeError"),
        ("```python\nawait engine.nothing()\n```", "AttributeError"),
        ('```python title="test_it.py"\ndef test_it(): assert False\n```', "1 failed"),
        ('```python title="test_it.py"\ndef best_it(): pass\n```', "no tests ran"),
    ],
)
def test_what_does_not_work_is_noticed(text: str, said: str, session: Session) -> None:
    """The control, for each kind of block."""
    (block,) = blocks_of(text, "page.md")
    with pytest.raises(AssertionError, match=said):
        session.run(block)


def test_what_serves_goes_on_while_the_page_does(session: Session) -> None:
    """A server that a page starts answers where the page says, and identifiers are those of what there is."""
    text = (
        "```sh\nexport GREETING=hello\noutreach-server serve\n```\n\n"
        '```sh\n[ "$GREETING" = hello ]\noutreach-server campaigns start CAMPAIGN_ID\n'
        "outreach-server campaigns watch CAMPAIGN_ID | grep -i completed\n```\n"
    )
    for block in blocks_of(text, "page.md"):
        session.run(block)
