"""The tests of the console fail without each check, each right and each escape: taken out one at a time, in a copy."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs
import pytest

pytestmark = pytest.mark.nightly("a run of tests for each of some hundred mutations")

ROOT: Final = Path(__file__).parents[2]
CONSOLE: Final = Path("outreach_server/console")
SECONDS: Final = 600


@attrs.frozen
class Mutation:
    """A change of one place that the tests must notice.

    Attributes:
        file: Below the repository.
        before: The text to replace, which may stand in several places.
        after: What replaces it.
        tests: The tests that must fail.
        place: Which of the places, from 0.
    """

    file: Path
    before: str
    after: str
    tests: str
    place: int = 0

    def __str__(self) -> str:
        return f"{self.file.name}: {self.before.splitlines()[0].strip()} ({self.place})"

    def apply(self, root: Path) -> None:
        """Change the file below `root`."""
        path = root / self.file
        parts = path.read_text("utf-8").split(self.before)
        assert len(parts) > self.place + 1, f"{self} is not there any more"
        first = self.before.join(parts[: self.place + 1])
        path.write_text(f"{first}{self.after}{self.before.join(parts[self.place + 1 :])}", "utf-8")


def checks() -> Iterator[Mutation]:
    """Yield the checks of forms, sessions, cookies and links, each taken out."""
    forms, access, sessions = (f"tests/console/test_{name}.py" for name in ("forms", "access", "sessions"))
    app, security, identities = CONSOLE / "app.py", CONSOLE / "security", CONSOLE / "identities"
    public_pages, users = identities / "public_pages.py", "tests/engine/test_users.py"
    token = "tokens.accepts("
    yield Mutation(app, f"not visit.console.{token}", f"None is visit.console.{token}", forms)
    yield Mutation(public_pages, f"not console.{token}", f"None is console.{token}", sessions)
    yield Mutation(app, "not is_same_origin(", "None is is_same_origin(", forms)
    yield Mutation(public_pages, "not is_same_origin(", "None is is_same_origin(", sessions)
    yield Mutation(security / "forms.py", 'return site == "same-origin"', "return True", forms)
    yield Mutation(security / "forms.py", "        return False\n", "        return True\n", forms)
    yield Mutation(security / "forms.py", "origin.lower() in ours", "True", forms)
    yield Mutation(security / "forms.py", "{day.isoformat()}\\n{subject}", "{day.isoformat()}", forms)
    yield Mutation(app, "if visit.role is None:", "if False:", access)
    yield Mutation(app, "if identified is None:", "if False:", access)
    yield Mutation(CONSOLE / "pages/campaign_actions.py", "    visit.require(action.right)\n", "", access)
    yield Mutation(
        CONSOLE / "pages/campaign_actions.py", "            raise WrongName(typed)", "            pass", forms
    )
    people = "tests/console/test_people.py"
    pages = CONSOLE / "pages"
    yield Mutation(pages / "person.py", "not is_typed(", "None is is_typed(", people)
    yield Mutation(
        pages / "person.py",
        "(wrong := await problem_of_proof(visit))",
        "(wrong := await problem_of_proof(visit)) is None",
        sessions,
    )
    yield Mutation(pages / "register.py", "not is_typed(", "None is is_typed(", people)
    yield Mutation(pages / "unknown.py", "> _SHARE * shown", "> 1e9", people)
    yield Mutation(pages / "thread.py", "and not _is_sent(items, body)", "and False", people)
    yield Mutation(
        CONSOLE / "live/stream.py", "if not await self._may_go_on():", "if False:", "tests/console/test_live.py"
    )
    logins = "tests/engine/test_logins.py"
    known = Path("outreach/ledger/access/logins.py")
    yield Mutation(known, " and last.user_id == user.id", "", logins)
    yield Mutation(known, 'session.second_factor != "awaited" and ', "", logins)
    yield Mutation(pages / "downloads.py", "if not needs_proof(visit):", "if True:", sessions)
    yield Mutation(public_pages, "return path if plain else home", "return path", sessions)
    yield Mutation(identities / "cookies.py", "httponly=True", "httponly=False", sessions)
    yield Mutation(identities / "cookies.py", 'samesite="lax"', 'samesite="none"', sessions)
    yield Mutation(identities / "cookies.py", "secure=secure", "secure=False", sessions)
    yield Mutation(CONSOLE / "pages/login.py", "    await _end(visit)\n", "", sessions)
    yield Mutation(
        CONSOLE / "pages/account.py", "if wrong := await problem_of_proof(visit):", 'if wrong := "":', sessions
    )
    set_up, pages = "tests/console/test_set_up.py", CONSOLE / "pages/set_up"
    yield Mutation(
        pages / "pages.py", "                visit.require(action.right)\n", "                pass\n", set_up
    )
    yield Mutation(pages / "pages.py", "if action.typed and not _is_name(", "if False and not _is_name(", set_up)
    yield Mutation(pages / "pages.py", "if action.proof and not problems", "if False and not problems", set_up)
    yield Mutation(pages / "pages.py", "if action.changes and ", "if False and ", set_up)
    yield Mutation(CONSOLE / "identities/proof.py", "return not visit.user.verified", "return False", set_up)
    yield Mutation(app, " or right is Right.OPERATE:", ":", set_up)
    yield Mutation(app, "if user.incomplete and", "if False and", set_up)
    yield Mutation(CONSOLE / "context.py", "return self.user.operator if", "return True if", set_up)
    frame = "tests/console/test_frame.py"
    yield Mutation(security / "headers.py", "if not plain or port == 0:", "if False:", frame)
    yield Mutation(CONSOLE / "look.py", "theme if theme in THEMES else", "theme or", frame)
    yield Mutation(CONSOLE / "look.py", "httponly=True", "httponly=False", frame)
    yield Mutation(CONSOLE / "pages/look.py", " or theme not in THEMES", "", frame)
    yield Mutation(CONSOLE / "pages/look.py", "dates not in set(DateStyle)", "False", frame)
    yield Mutation(CONSOLE / "pages/campaign_live.py", "visit.user.time_zone, ", "", "tests/console/test_live.py")
    yield Mutation(CONSOLE / "pages/campaign_live.py", "visit.look.dates, ", "", "tests/console/test_live.py")
    yield Mutation(CONSOLE / "rendering.py", "without_absent(self", "(self", frame)
    link, links = Path("outreach_server/cli/serving/login_link.py"), "tests/cli/test_login_link.py"
    yield Mutation(link, '        self._token = ""\n', "", links)
    yield Mutation(link, "is_loopback_host(address) and", "", links)
    yield Mutation(link, " and clock_of(engine).now() < self.until", "", links)
    yield Mutation(link, "secrets.compare_digest(given.encode(), token.encode())", "True", links)
    ledger = Path("outreach/ledger/access/users.py")
    yield Mutation(ledger, " or not _maker_still_may(tx, found, user)", "", users)
    yield Mutation(ledger, 'found.kind == "setup" and tx.users.exists_any()', "False", users)


def rights() -> Iterator[Mutation]:
    """Yield the right of each action, replaced by that to see."""
    file, access = CONSOLE / "actions.py", "tests/console/test_access.py"
    of_campaigns, _, of_forms = (ROOT / file).read_text("utf-8").partition("FORM_ACTIONS: Final")
    named = re.findall(r"right=Right\.\w+", of_campaigns)
    for right in sorted(set(named)):
        for place in range(named.count(right)):
            yield Mutation(file, right, "right=Right.SEE", access, place)
    # Those of the other forms are behind the right of their page, which is taken out below.
    people, after = "tests/console/test_people.py", "tests/console/test_after_campaigns.py"
    for operation, tests in (
        *(("cloneCampaign", after), ("addUnsubscribes", people), ("removeUnsubscribe", people)),
        *(("erasePerson", people), ("setCallOutcome", people), ("skipRecipient", people), ("createCall", people)),
    ):
        found = re.search(rf'operation="{operation}",\s+right=Right\.\w+', of_forms)
        assert found is not None, operation
        yield Mutation(file, found[0], re.sub(r"Right\.\w+$", "Right.SEE", found[0]), tests)
    many = CONSOLE / "pages/many_campaigns.py"
    yield Mutation(many, "    visit.require(action.right)\n", "", "tests/console/test_many_campaigns.py")
    app = CONSOLE / "app.py"
    yield Mutation(app, "module.act, Right.DRAFT)", "module.act, Right.SEE)", "tests/console/test_new_campaign.py")
    guards = re.findall(r'page\("/(?:w/{workspace}|system)/.*Right\.\w+\)', (ROOT / app).read_text("utf-8"))
    assert len(guards) >= 11
    for guard in guards:
        tests = "tests/console/test_set_up.py" if "audit" in guard else access
        yield Mutation(app, guard, re.sub(r"Right\.\w+\)$", "Right.SEE)", guard), tests)


_BEHIND_THE_PAGE: Final = {"right=Right.START", "right=Right.PAUSE"}
"""Rights of actions on schedules: everybody who sees the page has them."""


def rights_of_set_up() -> Iterator[Mutation]:
    """Yield the right of each page and action of the set-up, replaced by that to see."""
    for file in sorted((ROOT / CONSOLE / "pages/set_up").glob("*.py")):
        text = file.read_text("utf-8")
        for right in sorted(set(re.findall(r"(?:right=|= |, |else )Right\.\w+", text))):
            if right in _BEHIND_THE_PAGE:
                continue
            for place in range(text.count(right)):
                seen = right.rpartition(".")[0] + ".SEE"
                yield Mutation(CONSOLE / "pages/set_up" / file.name, right, seen, "tests/console/test_set_up.py", place)


def escapes() -> Iterator[Mutation]:
    """Yield each escape, taken out."""
    hostile = "tests/console/test_hostile.py"
    yield Mutation(CONSOLE / "rendering.py", "autoescape=True", "autoescape=False", hostile)
    yield Mutation(CONSOLE / "words.py", "text.translate(_IN_LINES)", "text", hostile)
    for file in sorted((ROOT / CONSOLE / "drawing").glob("*.py")):
        file = file.relative_to(ROOT)
        found = re.findall(r"\{escape\([\w.]+", (ROOT / file).read_text("utf-8"))
        # The digits of a clock.
        for call in sorted(set(found) - {"{escape(text", "{escape(one.hour"}):
            for place in range(found.count(call)):
                yield Mutation(file, call, f"{{({call.removeprefix('{escape(')}", hostile, place)


@pytest.mark.parametrize("mutation", [*checks(), *rights(), *rights_of_set_up(), *escapes()], ids=str)
def test_a_test_fails_without_it(mutation: Mutation, tmp_path: Path) -> None:
    """In a copy of the packages, which the tests import in the place of the real ones."""
    for name in ("outreach", "outreach_server", "tests"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "openapi.yaml"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, tmp_path / name)
    mutation.apply(tmp_path)
    command = [sys.executable, "-m", "pytest", mutation.tests, "-x", "-q", "-n", "0", "-p", "no:cacheprovider"]
    ended = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert ended.returncode == 1, f"{mutation.tests} passes without it, or cannot run:\n{ended.stdout[-2000:]}"
