from __future__ import annotations

import ast
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from outreach import campaigns
from outreach.models import resources
from outreach.services.context import Later
from outreach_server.cli.root import COMMANDS

ROOT = Path(__file__).resolve().parent.parent

UNTIL_USED = ("phonenumbers", "httpx", "cryptography", "holidays", "psutil", "sqlite_utils", "aiosqlite")
"""Libraries that only some uses need; each of them takes long to load."""

OF_A_SERVER = ("starlette", "uvicorn", "rich", "yaml")

PRINT = "import json, sys; print(json.dumps(sorted(sys.modules)), file=sys.stderr)"


def loaded(code: str) -> set[str]:
    """Run code in a fresh process; return the modules that it has loaded."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{PRINT}"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stderr.splitlines()[-1]))


def run(*arguments: str) -> str:
    """Return code that runs a command of the command line."""
    return (
        f"import sys\nsys.argv = ['outreach-server', *{arguments!r}]\n"
        "from outreach_server.cli import main\ntry:\n    main()\nexcept SystemExit as ended:\n    assert not ended.code"
    )


def test_the_package_loads_what_everybody_needs() -> None:
    """`import outreach` is quick: what a number, a provider or a file needs comes with the first of them."""
    assert not loaded("import outreach") & {*UNTIL_USED, *OF_A_SERVER, "attrs", "asyncio", "outreach.engine"}
    assert not loaded("from outreach import Outreach, NewSmsCampaign; from outreach.http import read_new_call") & {
        *UNTIL_USED,
        *OF_A_SERVER,
    }


def test_the_engine_comes_without_what_it_does() -> None:
    """`from outreach import Outreach` loads no service, no rule of the ledger and no database."""
    modules = {name for name in loaded("from outreach import Outreach") if name.startswith("outreach.")}
    parts = {".".join(name.split(".")[:2]) for name in modules}
    assert not parts & {f"outreach.{one}" for one in ("campaigns", "dispatch", "insight", "ledger", "serialization")}
    assert {name for name in modules if name.startswith(("outreach.services.", "outreach.storage."))} == {
        "outreach.services.context",
        "outreach.storage.base",
        "outreach.storage.base.progress",
        "outreach.storage.base.transfer",
        "outreach.storage.opening",
    }
    assert len(modules) <= 80


def test_the_core_imports_no_integration() -> None:
    """Not when a module is loaded; and only `outreach.plugins` imports one by its name."""
    files = [one for one in (ROOT / "outreach").rglob("*.py") if "integrations" not in one.parts]
    names = [".".join(one.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for one in files]
    modules = loaded(f"from importlib import import_module\nfor name in {names}:\n    import_module(name)")
    assert {*names} <= modules
    assert not {name for name in modules if name.startswith("outreach.integrations")}
    naming = {
        file.name
        for file in files
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Constant) and str(node.value).startswith("outreach.integrations")
    }
    assert naming == {"plugins.py"}


@pytest.mark.parametrize("dispatch", [False, True])
def test_an_engine_that_dispatches_imports_its_services_as_it_is_opened(dispatch: bool) -> None:
    """Its event loop is not held up by an import at the first use; others import what they use."""
    modules = loaded(
        "import asyncio\nfrom outreach import Outreach\n"
        f"async def look():\n    async with Outreach.open('memory://', dispatch={dispatch}):\n        pass\n"
        "asyncio.run(look())"
    )
    services = {"outreach.campaigns", "outreach.insight.preflight", "outreach.services.users.users"}
    services |= {"outreach.services.messaging.calls", "outreach.services.tenants.resources"}
    assert (services & modules) == (services if dispatch else set())


@pytest.mark.parametrize(
    "package",
    [
        *("outreach", "outreach.models", "outreach.protocols", "outreach.http", "outreach.server_support"),
        *("outreach_server", "outreach_server.console"),
    ],
)
def test_every_public_name_is_found_where_type_checkers_find_it(package: str) -> None:
    """The imports that they read, the names that are imported when they are used, and `__all__` are the same."""
    module = import_module(package)
    tree = ast.parse(Path(str(module.__file__)).read_text("utf-8")).body
    read, *_ = [node for node in tree if isinstance(node, ast.If)]
    root = "outreach." if package.partition(".")[0] == "outreach" else f"{package}."
    expected = {
        name.name: str(node.module).removeprefix(root)
        for node in read.body
        if isinstance(node, ast.ImportFrom)
        for name in node.names
        if name.name in module.__all__
    }
    assert expected == module._MODULES
    at_once = {node.name for node in tree if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    assert {*module.__all__} - {*expected} - at_once == {
        *(["__version__"] if package == "outreach" else ()),
        *(resources.__all__ if package == "outreach.models" else ()),
    }
    assert len(module.__all__) == len({*module.__all__})
    for name in module.__all__:
        assert getattr(module, name) is not None
    assert {*module.__all__} <= {*dir(module)}


def test_parts_of_campaigns_are_imported_from_where_type_checkers_find_them() -> None:
    """The stand-ins of their classes name the modules of the imports."""
    tree = ast.parse(Path(campaigns.__file__).read_text("utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    expected = {
        name.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for name in node.names
    }
    found = {name: value for name, value in vars(campaigns).items() if isinstance(value, Later)}
    assert len(found) > 10
    for name, value in found.items():
        assert (value._module, value._name) == (expected[name], name)
        assert value._imported().__name__ == name


@pytest.mark.parametrize("package", ["outreach", "outreach_server"])
def test_a_name_that_is_none_is_an_error(package: str) -> None:
    """It reads as for any other module."""
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nonsense'"):
        import_module(package).nonsense  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'nonsense'"):
        exec(f"from {package} import nonsense")  # noqa: S102


def test_the_server_package_loads_no_server() -> None:
    """Its app comes when it is asked for."""
    modules = loaded("import outreach_server")
    assert not modules & {*UNTIL_USED, *OF_A_SERVER, "outreach"}
    assert {"starlette", "outreach"} <= loaded("from outreach_server import create_app, running; create_app")


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("campaigns", "--help")])
def test_help_loads_no_server(arguments: tuple[str, ...]) -> None:
    """Help comes quickly, also where it is one command's."""
    assert not loaded(run(*arguments)) & {*UNTIL_USED, "starlette", "uvicorn", "yaml"}


def test_the_list_of_commands_loads_none_of_them() -> None:
    """`outreach-server --help` knows what each command is for without it, and without the engine."""
    modules = loaded(run("--help"))
    assert not modules & {*UNTIL_USED, *OF_A_SERVER, "outreach.engine", "asyncio"}
    assert {name for name in modules if name.startswith("outreach_server.cli.")} == {
        "outreach_server.cli.base",
        "outreach_server.cli.sigint",
        "outreach_server.cli.root",
    }


def test_a_command_of_campaigns_loads_no_other() -> None:
    """A list of campaigns needs no import of files, no watching, no forecast on the screen, and no server."""
    with TemporaryDirectory() as place:
        url = f"sqlite:///{place}/outreach.db"
        made = (
            f"import asyncio\nfrom outreach import NewWorkspace, Outreach\n"
            f"async def make():\n    async with Outreach.open({url!r}) as engine:\n"
            "        await engine.workspaces.create(NewWorkspace(name='Acme'))\nasyncio.run(make())"
        )
        loaded(made)
        modules = loaded(run("campaigns", "list", "Acme", "--database", url))
    assert not modules & {*UNTIL_USED, "starlette", "uvicorn", "yaml", "filelock"} - {"aiosqlite"}
    parts = {".".join(name.split(".")[:3]) for name in modules if name.startswith("outreach.")}
    assert not parts & {"outreach.dispatch", "outreach.insight", "outreach.serialization.exports"}
    assert {name for name in parts if name.startswith("outreach.services.")} == {
        "outreach.services.campaigns",
        "outreach.services.context",
        "outreach.services.idempotency",
        "outreach.services.lists",
        "outreach.services.tenants",
    }
    assert len([name for name in modules if name.startswith("outreach.")]) <= 210
    assert {
        name for name in modules if name.startswith(("outreach_server.cli.campaigns.", "outreach_server.lists"))
    } == {
        "outreach_server.cli.campaigns.group",
        "outreach_server.cli.campaigns.listing",
    }


def test_a_number_is_still_read() -> None:
    """What was not loaded at first is, once it is used."""
    code = (
        "import sys\nfrom outreach import NewRecipient\nfrom outreach.server_support import prepare_recipient\n"
        "found = prepare_recipient(NewRecipient(phone_number='020 7946 0018'), 'GB')\n"
        "assert found.phone == '+442079460018', found"
    )
    assert "phonenumbers" in loaded(code)


@pytest.mark.parametrize("limit", [30, 45, 1000])
@pytest.mark.parametrize("name", list(COMMANDS))
def test_the_list_says_of_each_command_what_its_help_says(name: str, limit: int) -> None:
    """It is written down twice, so that the list can be shown without importing them."""
    assert COMMANDS.purpose(name, limit) == COMMANDS[name].get_short_help_str(limit)
    assert COMMANDS[name].name == name
