from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import outreach
from tests.surface import MODULES, PATH, names_of_testing

ROOT = Path(__file__).resolve().parent.parent

HIDDEN = {
    *("Service", "Stream", "Configurable", "Checked"),  # what classes are built on
    *(
        "AsyncEventStream",
        "AsyncNamedStream",
        "EngineThread",
        "EngineServices",
        "SyncResourceServices",
        "ServiceContext",
        "Tally",
    ),  # only the engine makes them
    "Setting",  # how the server documents its settings
    "PreviousCredentials",  # what the vault keeps of replaced ones
    *("CampaignRef", "UnitOfWork", "WorkspaceTable"),  # opaque to a storage of one's own
}
"""Types that public signatures name, and that nobody who uses them has to."""


def test_the_public_surface_is_the_one_that_was_reviewed() -> None:
    """Every public name and signature stands in `tests/surface.txt`; `python -m tests.surface` writes it anew."""
    code = "from tests.surface import surface; import sys; sys.stdout.write(surface())"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == PATH.read_text(encoding="utf-8")


def test_the_top_level_stays_small() -> None:
    """A reader takes in some sixty names; what fewer programs need is in a module of its own."""
    assert len(vars(outreach)["__all__"]) <= 65


def test_the_package_names_its_public_modules() -> None:
    """Each one that its docstring names can be imported, and none is missing."""
    sentence, *_ = (outreach.__doc__ or "").partition("everything else")
    named = {f"outreach.{name.removeprefix('outreach.')}" for name in re.findall(r"`([\w.]+)`", sentence)}
    for name in named:
        import_module(name)
    assert named == {*MODULES, "outreach.testing"} - {"outreach"}


def test_what_public_signatures_name_is_public() -> None:
    """A caller can annotate a function around the engine: each type that it needs is in a public module."""
    code = "from tests.surface import hidden_types; print(*sorted(hidden_types()))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    assert set(done.stdout.split()) == HIDDEN


def test_the_surface_has_the_fields_of_every_public_class() -> None:
    """Those of the configuration too, and what the server and the test tools offer."""
    text = PATH.read_text("utf-8")
    for line in (
        "class EngineConfig(Configurable)\n    max_queued_intents: int = ...\n",
        "class Vault()\n    __init__(*, keys: ",
        "\ncreate_app(database_url: str | None = None, *, engine: ",
        "    script(plan: Script[RequestT], *, then: ",
    ):
        assert line in text


def test_examples_take_only_documented_test_tools() -> None:
    """What an example or a trial imports from `outreach.testing` is public."""
    files = [*(ROOT / "examples").rglob("*.py"), *(ROOT / "tests" / "trials").rglob("*.py")]
    imported = {
        (str(node.module), name.name)
        for file in files
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("outreach.testing.")
        for name in node.names
    }
    assert ("outreach.testing.scripted", "ScriptedCarrier") in imported
    public = names_of_testing()
    assert {(module, name) for module, name in imported if name not in public.get(module, ())} == set()
