"""Figures of the structure of a checkout: `python tests/structure.py --of PATH [--against PATH]`.

`--of` is this checkout by default. With `--against` the table has both and what differs: an arrangement without a
change of behaviour is compared with the commit before it. The checkout may be older than this script: its code is read
as text, and run in processes that find its packages first.

How the figures are defined:

- Lines of code: those with a token that is no comment, without texts that stand alone (docstrings).
- Packages of `outreach`: directories with `__init__.py` and another module. A directory of SQL alone counts with the
  one above it.
- Imports between packages of `outreach`: pairs of packages, by the imports that run when a module is loaded. Those of
  the modules directly in `outreach` do not count: `engine.py` puts everything together.
- Levels: the longest chain of packages that import each other, without `outreach.testing`. A circle of packages is one
  level; each module directly in `outreach` counts as a package, because `engine.py` is above all and `errors.py` below.
- Import circles: how many files each circle of imports has, imports in functions and for type checkers included.
- A request passes a file when one of the file's functions runs, in any thread. Requests of the app go to a database in
  memory, the command to a file. What runs beside a message (heartbeats, say) counts with it, so that its functions may
  differ by a few from run to run.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
import tokenize
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, redirect_stdout, suppress
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
APART: Final = ("outreach/testing", "outreach_server/console", "tests/simulation", "tests/bench")
"""Directories that count for themselves, and not with the directory above."""

_TOPS: Final = ("outreach", "outreach_server")
_SILENT: Final = frozenset(
    {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
)
_STEPS: Final = ("serve", "prepare", "start")
_CAMPAIGN: Final = {"name": "Autumn", "message_body": "Hi", "sms_carrier": "twilio", "sms_from_number": "+14155550199"}
_PEOPLE: Final = [{"phone_number": f"+1415555010{last}"} for last in range(3)]
_KEY_SECONDS: Final = 1.0
"""Keys are believed for half a second: each request that counts looks its key up."""

_RECEIPT_SECONDS: Final = 2.0
"""The simulator's receipt comes within a second."""

Graph = Mapping[str, set[str]]


def figures(checkout: Path) -> dict[str, int | str]:
    """Return every figure of a checkout by its name, in the order of the table."""
    found: dict[str, int | str] = {}
    for kind, count in (("lines", lines), ("files", lambda _: 1)):
        sizes = Counter[str]()
        for top in (*_TOPS, "tests", "benchmarks", "examples"):
            for file in sorted((checkout / top).rglob("*.py")):
                for group in _groups(file.relative_to(checkout)):
                    sizes[group] += count(file)
        found |= {f"{kind} {group}": size for group, size in sorted(sizes.items())}
    found |= imports(checkout)
    for name, hand_written in (("words docs, hand-written", True), ("words docs/reference", False)):
        pages = sorted((checkout / "docs").rglob("*.md"))
        chosen = [page for page in pages if (checkout / "docs/reference" in page.parents) != hand_written]
        found[name] = sum(len(page.read_text("utf-8").split()) for page in chosen)
    return found | _requests(checkout)


def _groups(file: Path) -> Iterator[str]:
    """Yield what a file counts for: its top, or what is apart, and of a package that is not apart the one below."""
    whole = next((apart for apart in APART if file.is_relative_to(apart)), file.parts[0])
    yield whole
    if whole in _TOPS:
        yield "/".join(file.parts[:2]) if len(file.parts) > 2 else f"{whole}/*.py"


def lines(file: Path) -> int:
    """Return how many lines of code a file has."""
    text = file.read_text("utf-8")
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _SILENT:
            found.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            found.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(found)


# ------------------------------------------------------------------------------------------------------- imports


def imports(checkout: Path) -> dict[str, int | str]:
    """Return the figures of packages and imports of a checkout."""
    modules = {
        ".".join(file.relative_to(checkout).with_suffix("").parts).removesuffix(".__init__"): file
        for top in _TOPS
        for file in sorted((checkout / top).rglob("*.py"))
    }
    loading: Graph = {name: set(_imported(file, modules, always=False)) for name, file in modules.items()}
    ever: Graph = {name: set(_imported(file, modules, always=True)) for name, file in modules.items()}
    sizes = Counter(file.parent for file in modules.values())

    def package(module: str) -> str:
        directory = modules[module].parent
        return ".".join((directory.parent if sizes[directory] == 1 else directory).relative_to(checkout).parts)

    def package_or_file(module: str) -> str:
        return module if package(module) == "outreach" else package(module)

    def below(top: str, but: str = "-") -> Graph:
        return {
            name: {one for one in found if one.split(".")[0] == top and one.split(".")[1:2] != [but]}
            for name, found in loading.items()
            if name.split(".")[0] == top and name.split(".")[1:2] != [but]
        }

    between = _grouped(below("outreach"), package)
    circles = sorted((len(circle) for circle in _circles(ever) if len(circle) > 1), reverse=True)
    return {
        "folders directly in outreach": len(list((checkout / "outreach").glob("*/__init__.py"))),
        "packages outreach": len(between),
        "packages outreach_server": len({package(name) for name in modules} - between.keys()),
        "imports between packages of outreach": sum(map(len, between.values())) - len(between["outreach"]),
        "levels of outreach": _levels(_grouped(below("outreach", "testing"), package_or_file)),
        "files in import circles": " + ".join(map(str, circles)) or "none",
    }


def _imported(file: Path, modules: Mapping[str, Path], *, always: bool) -> Iterator[str]:
    """Yield the modules that a file imports when it is loaded; `always`: also later, and for type checkers."""
    left: list[ast.AST] = [ast.parse(file.read_text("utf-8"))]
    while left:
        node = left.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test) and not always:
            left += [] if isinstance(node.test, ast.Name | ast.Attribute) else node.body
            left += node.orelse
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or always:
            left += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for one in node.names:
                name = f"{node.module}.{one.name}"
                yield from [one for one in (name if name in modules else node.module,) if one in modules]


def _grouped(graph: Graph, group: Callable[[str], str]) -> Graph:
    groups: dict[str, set[str]] = {}
    for name, found in graph.items():
        groups.setdefault(group(name), set()).update(group(one) for one in found if group(one) != group(name))
    return groups


def _circles(graph: Graph) -> list[set[str]]:
    """Return the strongly connected components, each after those that it imports (Tarjan's algorithm)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_: list[str] = []
    circles: list[set[str]] = []

    def visit(name: str) -> None:
        number[name] = lowest[name] = len(number)
        open_.append(name)
        for other in sorted(graph[name]):
            if other not in number:
                visit(other)
            if other in open_:
                lowest[name] = min(lowest[name], lowest[other])
        if lowest[name] == number[name]:
            start = open_.index(name)
            circles.append(set(open_[start:]))
            del open_[start:]

    sys.setrecursionlimit(max(sys.getrecursionlimit(), 10 * len(graph) + 1000))
    for name in sorted(graph):
        if name not in number:
            visit(name)
    return circles


def _levels(graph: Graph) -> int:
    level: dict[str, int] = {}
    for circle in _circles(graph):
        outside = {other for name in circle for other in graph[name]} - circle
        level |= dict.fromkeys(circle, 1 + max((level[other] for other in outside), default=0))
    return max(level.values())


# ------------------------------------------------------------------------------------------------------ requests


def _requests(checkout: Path) -> dict[str, int | str]:
    """Run this file on the packages of a checkout, and return what its requests pass."""
    own = checkout / ".venv/bin/python"
    found: dict[str, int | str] = {}
    with tempfile.TemporaryDirectory() as directory:
        for step in _STEPS:
            done = subprocess.run(
                [own if own.exists() else sys.executable, "-P", __file__, "--of", checkout, "--step", step],
                env={**os.environ, "PYTHONPATH": str(checkout), "OUTREACH_DATABASE_URL": f"sqlite:///{directory}/a.db"},
                cwd=directory,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                check=True,
            )
            found |= json.loads(done.stdout)
    return found


class _Passed:
    """The functions that run while it records, in any thread that starts after it is made."""

    def __init__(self, checkout: Path) -> None:
        self._tops = tuple(f"{checkout / top}/" for top in _TOPS)
        self._seen: set[CodeType] | None = None
        self.found: dict[str, int] = {}
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and self._seen is not None:
            self._seen.add(frame.f_code)

    @contextmanager
    def by(self, what: str) -> Iterator[None]:
        """Record what the block passes under a name."""
        seen = self._seen = set()
        try:
            yield
        finally:
            self._seen = None
        # The body of a module or a class is no function.
        codes = [one for one in seen if one.co_flags & CO_OPTIMIZED and one.co_filename.startswith(self._tops)]
        files = {one.co_filename for one in codes}
        self.found[f"files passed by {what}"] = len(files)
        self.found[f"packages passed by {what}"] = len({Path(one).parent for one in files})
        self.found[f"functions passed by {what}"] = len(codes)


async def _serve(passed: _Passed) -> None:
    """Send requests to an app in memory, each once before it counts, because the first one imports modules."""
    for dispatch in (False, True):
        async with _client("memory://", dispatch=dispatch) as (engine, workspace_id, ask):
            for number in range(2):
                if not dispatch:
                    await asyncio.sleep(_KEY_SECONDS)
                    with passed.by("POST /sms-campaigns"):
                        await ask("POST", "/sms-campaigns", {**_CAMPAIGN, "recipients": _PEOPLE})
                    [agent] = (await ask("GET", "/manage/agents")).json()["data"]
                    call = await ask("POST", "/calls", {"agent_id": agent["id"], "to": f"+1415555019{number}"})
                    await asyncio.sleep(_KEY_SECONDS)
                    with passed.by("GET /calls/{id}"):
                        await ask("GET", call.headers["Location"])
                else:
                    made = (await ask("POST", "/sms-campaigns", {**_CAMPAIGN, "recipients": _PEOPLE[:1]})).json()
                    with passed.by("an SMS from start to receipt"):
                        await engine.campaigns.start(workspace_id, made["id"])
                        await asyncio.sleep(_RECEIPT_SECONDS)
                    exported = await ask("GET", f"/manage/campaigns/{made['id']}/export?format=csv")
                    assert "delivered" in exported.text, exported.text


async def _prepare(campaign: Path) -> None:
    """Write the id of a campaign that can be started into a file."""
    async with _client(os.environ["OUTREACH_DATABASE_URL"], dispatch=False) as (_, _, ask):
        made = await ask("POST", "/sms-campaigns", {**_CAMPAIGN, "recipients": _PEOPLE})
        campaign.write_text(made.json()["id"], "utf-8")


@asynccontextmanager
async def _client(url: str, *, dispatch: bool) -> AsyncIterator[Any]:
    """Serve a database that has a workspace with an agent; yield engine, workspace id and a function that asks."""
    import httpx

    from outreach import NewAgent, NewWorkspace, Outreach
    from outreach.models import API_SCOPES
    from outreach_server import create_app

    async with Outreach.open(url, dispatch=dispatch) as engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="Acme", contact_hours=False, request_limit=None))
        await engine.agents.create(workspace.id, NewAgent(name="Renewals"))
        key = await engine.api_keys.create(workspace.id, scopes=API_SCOPES)
        headers = {"Authorization": f"Bearer {key.api_key}"}
        transport = httpx.ASGITransport(create_app(engine=engine))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as client:

            async def ask(method: str, path: str, body: Any = None) -> Any:
                answer = await client.request(method, path, json=body)
                assert answer.is_success, answer.text
                return answer

            yield engine, workspace.id, ask


def _start(passed: _Passed, campaign: Path) -> None:
    """Start a campaign on the command line, in a process that has imported nothing before."""
    with passed.by("campaigns start"), redirect_stdout(io.StringIO()), suppress(SystemExit):
        from outreach_server.cli import main

        main(["campaigns", "start", campaign.read_text("utf-8")], prog_name="outreach-server")


def _run_step(checkout: Path, step: str) -> None:
    """Print what a step passes of the packages that this process imports."""
    passed, campaign = _Passed(checkout), Path("campaign")
    if step == "serve":
        asyncio.run(_serve(passed))
    elif step == "prepare":
        asyncio.run(_prepare(campaign))
    else:
        _start(passed, campaign)
    print(json.dumps(passed.found))


# ------------------------------------------------------------------------------------------------------- command


def compare(now: Mapping[str, int | str], before: Mapping[str, int | str]) -> Iterator[str]:
    """Yield the lines of a table of figures before and now, and what differs."""
    for name in dict.fromkeys([*before, *now]):
        new, old = now.get(name, 0), before.get(name, 0)
        change = f"{new - old:+,}" if isinstance(new, int) and isinstance(old, int) else "differs"
        yield f"{name:<52}{_cell(old)}{_cell(new)}{f'{change:>9}' if new != old else ''}"


def _cell(value: int | str) -> str:
    return f"{value:>9,}" if isinstance(value, int) else f"{value:>9}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Count what a checkout is made of.")
    parser.add_argument("--of", type=Path, default=ROOT, help="the checkout; this one by default")
    parser.add_argument("--against", type=Path, help="another one, which is shown before it, with the differences")
    parser.add_argument("--step", choices=_STEPS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.step:
        _run_step(arguments.of, arguments.step)
        return
    now = figures(arguments.of.resolve())
    if arguments.against:
        print(*compare(now, figures(arguments.against.resolve())), sep="\n")
    else:
        print(*(f"{name:<52}{_cell(value)}" for name, value in now.items()), sep="\n")


if __name__ == "__main__":
    main()
