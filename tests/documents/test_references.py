"""What code, tests and pages refer to is in the repository: the page, and the place in it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import attrs
import pytest

from outreach import EngineConfig, Outreach
from tests.documents.blocks import PAGES, ROOT
from tests.interface.sentences import ROWS

FOLDERS: Final = ("outreach", "outreach_server", "tests", "docs", "examples", "benchmarks", ".ci")
KINDS: Final = frozenset({".py", ".md", ".sql", ".yaml", ".toml", ".sh", ".html", ".js"})
FILES: Final = (
    *("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"),
    *("Makefile", "openapi.yaml", "pyproject.toml", "hatch_build.py"),
)
STAND_INS: Final = frozenset({"page.md"})
"""Names of pages that tests make."""
MADE_OF_PARTS: Final = frozenset({"workspace_suspended", "workspace_paywalled", "workspace_unavailable"})
"""Names that the code puts together."""

OF_OTHERS: Final = frozenset(
    {"max_wal_size", "post_worker_init", "synchronous_standby_names", "worker_process_shutdown"}
)
"""Hooks of gunicorn and Celery, settings of PostgreSQL."""

OBJECTS: Final = frozenset(
    {"account", "agent", "archived_campaigns", "detail", "engine", "key", "loop", "new", "tx", "wanted"}
)
"""First parts of dotted names in code that are objects, tables or placeholders."""

MAX_ARCHITECTURE_WORDS: Final = 2500
"""Somebody reads the page in ten minutes, before the first change."""

_REFERENCE: Final = re.compile(r"docs/[\w/-]+\.md(?:#[\w.-]*\w(?:(?:, | and |, and | to )#[\w.-]*\w)*)?")
_DOTTED: Final = re.compile(r"`([a-z_]+(?:\.[a-zA-Z_]+)+)`")
_LINK: Final = re.compile(r"\]\((?!https?:|mailto:)([^)\s]*)\)")
_PICTURE: Final = re.compile(r'\b(?:src|srcset)="(?!https?:|data:)([^"]+)"')
_NAME: Final = re.compile(r"(?<![\w/.{}>:-])((?:[\w-]+/)*[\w-]+\.md)\b")
_ELSEWHERE: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?:design|specification|interface)(?:'s|,)?\s+\(?sections?\s+\d",
        r"\((?:design|interface|spec)\)",
        r"\bsections?\s+[\d.]+\s+of\s+the\s+(?:design|interface|specification)\b",
        r"\b(?:of|by|as|in)\s+the\s+design\b",
        r"\bthe\s+design's\b",
        r"\bfield\s+notes\b",
        r"<carrier_\d>",
    )
)
"""Words that lead to a document which is somewhere else."""


@attrs.frozen
class Text:
    """A file of the repository.

    Attributes:
        name: Its path from the root.
        text: What is in it.
    """

    name: str
    text: str


def texts() -> Iterator[Text]:
    """Return every file that people read, but for this one, which names what must not be there."""
    found = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*")) if path.suffix in KINDS]
    for path in [*found, *(ROOT / name for name in FILES)]:
        if path != Path(__file__).resolve() and path.is_file() and "data" not in path.parts:
            yield Text(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))


def places(page: str) -> frozenset[str]:
    """Return what can be named behind the # of a page: its headings, as GitHub names them, and its marks."""
    text = page if page.startswith("#") or "\n" in page else (ROOT / page).read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE)
    shown = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in headings)
    slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in shown}
    return frozenset(slugs | set(re.findall(r'<a id="([^"]+)"', text)))


def lost(text: Text) -> list[str]:
    """Return the references of a text, and the links of a page, that lead nowhere."""
    wrong = []
    for reference in _REFERENCE.findall(text.text):
        page, _, rest = reference.partition("#")
        named = re.findall(r"#([\w.-]*\w)", f"#{rest}") if rest else []
        if not (ROOT / page).is_file() or not set(named) <= places(page):
            wrong.append(reference)
    if text.name.endswith(".md"):
        shown = re.sub(r"^```.*?^```", "", text.text, flags=re.DOTALL | re.MULTILINE)
        for link in [*_LINK.findall(shown), *_PICTURE.findall(shown)]:
            path, _, place = link.partition("#")
            target = (ROOT / text.name).parent / path if path else ROOT / text.name
            if not target.exists() or (place and place not in places(str(target.resolve().relative_to(ROOT)))):
                wrong.append(link)
    return wrong


def elsewhere(text: Text) -> list[str]:
    """Return the words of a text that lead to a document which is not in the repository."""
    words = [found[0] for pattern in _ELSEWHERE for found in pattern.finditer(text.text)]
    names = {name for name in _NAME.findall(text.text) if Path(name).name not in STAND_INS}
    near = (ROOT, ROOT / "docs", ROOT / "docs" / "reference", (ROOT / text.name).parent)
    return words + [name for name in sorted(names) if not any((folder / name).is_file() for folder in near)]


@cache
def modules() -> Mapping[str, Sequence[str]]:
    """Return the texts of the modules by each end of their dotted names."""
    found = defaultdict[str, list[str]](list)
    for file in (file for top in ("outreach", "outreach_server") for file in sorted((ROOT / top).rglob("*.py"))):
        parts = file.relative_to(ROOT).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        for start in range(len(parts)):
            found[".".join(parts[start:])].append(file.read_text("utf-8"))
    return found


def strange_names(text: Text) -> list[str]:
    """Return dotted names in a module that are neither of its project nor of an installed one."""
    wrong = []
    for name in _DOTTED.findall(text.text) if text.name.endswith(".py") else ():
        module, _, last = name.rpartition(".")
        first = name.partition(".")[0]
        known = name in modules() or any(re.search(rf"\b{last}\b", one) for one in modules().get(module, ()))
        # Also `module.Class.method`.
        known = known or any(re.search(rf"\b{last}\b", one) for one in modules().get(module.rpartition(".")[0], ()))
        if not known and first not in OBJECTS and f".{last}" not in KINDS and find_spec(first) is None:
            wrong.append(name)
    return wrong


def test_every_dotted_name_is_of_a_module() -> None:
    """A module that was moved or renamed is named by its present name."""
    assert {
        text.name: wrong
        for text in texts()
        if text.name.startswith(("outreach/", "outreach_server/")) and (wrong := strange_names(text))
    } == {}
    there, gone = "rules.phones.stored_forms", "policy.stored_numbers"
    assert strange_names(Text("outreach/one.py", f"See `{there}`, `{gone}` and `json.loads`.")) == [gone]


def test_every_reference_leads_to_its_place() -> None:
    """Page, rule, section and row: `docs/delivery-contract.md` with a `#rule-4` behind it, and links in pages."""
    assert {text.name: wrong for text in texts() if (wrong := lost(text))} == {}


def test_no_reference_leads_out_of_the_repository() -> None:
    """Who has the repository has everything that it refers to."""
    assert {text.name: wrong for text in texts() if (wrong := elsewhere(text))} == {}


@pytest.mark.parametrize(
    "wrong",
    [
        "docs/nothing.md",
        "docs/states.md#nothing",
        "docs/delivery-contract.md#rule-1 and #rule-99",
        "[a page](nothing.md)",
        "[a place](#nothing)",
        '<img src="pictures/nothing.png">',
    ],
)
def test_a_reference_that_leads_nowhere_is_noticed(wrong: str) -> None:
    """The control."""
    assert lost(Text("README.md", f"See {wrong}."))
    assert not lost(Text("README.md", "See docs/delivery-contract.md#rule-1 and #rule-2, [Pages](docs/README.md)."))


@pytest.mark.parametrize(
    "wrong",
    ["(design, section 5, rule 3)", "Interface, section 4.3", "section 2.2 of the interface", "as the design says",
     "(design,\n    section 5)", "field.md, 5.4", "<carrier_1>"],
)  # fmt: skip
def test_a_reference_to_elsewhere_is_noticed(wrong: str) -> None:
    """The control."""
    assert elsewhere(Text("outreach/engine.py", f"Do this {wrong}."))
    assert not elsewhere(Text("outreach/engine.py", "Do this (docs/interface.md#4.3, rule 2)."))


def test_every_file_that_a_page_names_is_there() -> None:
    """From the root, or from a package: `services/creating.py`."""
    folders = (ROOT, ROOT / "outreach", ROOT / "outreach_server", ROOT / "docs")
    lost_files = {
        f"{page.relative_to(ROOT)}: {name}"
        for page in PAGES
        for name in re.findall(r"`((?:[\w.-]+/)+[\w-]+\.(?:py|sql|yaml|toml))`", page.read_text(encoding="utf-8"))
        if not any((folder / name).is_file() for folder in folders)
    }
    assert lost_files == set()


def test_every_place_that_the_architecture_names_is_there() -> None:
    """Files and folders from the root: a row that leads nowhere is worse than none."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:outreach|outreach_server|tests|benchmarks|\.ci)/[\w./-]*)`", page)
    assert len(named) > 100
    files = [
        f"{folder}{name}.py"
        for folder, names in re.findall(r"^`([\w/]+/)` \| ([a-z_(), ]+)$", page, re.MULTILINE)
        for name in re.sub(r"\([^)]+\)", "", names).split()
    ]
    assert len(files) > 50
    assert [name for name in named + files if not (ROOT / name).exists()] == []


def test_the_architecture_is_one_short_page() -> None:
    """Details stand beside the code that they describe."""
    assert len((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").split()) <= MAX_ARCHITECTURE_WORDS


def test_every_name_that_a_page_shows_is_in_the_code() -> None:
    """`unknown_placeholders`: fields of documents, settings, reasons and actions in the log."""
    folders = (ROOT / "outreach", ROOT / "outreach_server")
    sources = [path for folder in folders for path in folder.rglob("*") if path.suffix in {".py", ".sql"}]
    known = {
        word
        for path in [*sources, ROOT / "openapi.yaml"]
        for word in re.findall(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)+", path.read_text(encoding="utf-8"))
    }
    lost_names = {
        f"{page.relative_to(ROOT)}: {name}"
        for page in PAGES
        for name in re.findall(r"`([a-z][a-z0-9]*(?:_[a-z0-9]+)+)`", page.read_text(encoding="utf-8"))
        if name not in known | MADE_OF_PARTS | OF_OTHERS
    }
    assert lost_names == set()


@pytest.mark.anyio
async def test_every_method_and_setting_that_a_page_names_is_there() -> None:
    """`engine.campaigns.start`, `EngineConfig.call_poll_seconds`: a page must not outlive what it describes."""
    pages = {page: page.read_text(encoding="utf-8") for page in PAGES}
    async with Outreach.open("memory://") as engine:
        methods = {
            f"{page.relative_to(ROOT)}: engine.{service}.{method}"
            for page, text in pages.items()
            for service, method in re.findall(r"\bengine\.(\w+)\.(\w+)", text)
            if not hasattr(getattr(engine, service, None), method)
        }
    settings = {
        f"{page.relative_to(ROOT)}: {setting}"
        for page, text in pages.items()
        for setting in re.findall(r"`EngineConfig\.(\w+)`|\(`(\w+_(?:seconds|days|bytes|size))`\)", text)
        if "".join(setting) not in {field.name for field in attrs.fields(EngineConfig)}
    }
    assert methods | settings == set()


def test_every_row_that_has_a_test_is_a_row_of_the_page() -> None:
    """`tests/interface` names rows of the last section of docs/interface.md, in its order."""
    page = (ROOT / "docs" / "interface.md").read_text(encoding="utf-8")
    shown = re.findall(r'^\| <a id="[\w-]+"></a>(.*?) \|', page, re.MULTILINE)
    assert tuple(shown) == ROWS


def test_every_page_is_of_one_kind() -> None:
    """docs/README.md names each page once, under its kind; the site has its navigation from it."""
    sections = re.split(r"^## ", (ROOT / "docs" / "README.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert [section.splitlines()[0] for section in sections] == [
        "Tutorials",
        "How-to guides",
        "Reference",
        "Explanation",
    ]
    named = [page for section in sections for page in re.findall(r"\]\(([^)]+\.md)\)", section)]
    pages = {str(page.relative_to(ROOT / "docs")) for page in PAGES if page.parent != ROOT} - {"README.md"}
    assert sorted(page for page in named if not page.startswith("../")) == sorted(pages)
