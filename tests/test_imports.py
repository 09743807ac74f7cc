from __future__ import annotations

import ast
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import outreach
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


def test_every_public_name_is_found_where_type_checkers_find_it() -> None:
    """The imports that they read, the names that are imported when asked for, and `__all__` are the same."""
    (block,) = [
        node for node in ast.parse(Path(outreach.__file__).read_text("utf-8")).body if isinstance(node, ast.If)
    ][:1]
    told = {
        name.name: str(node.module).removeprefix("outreach.")
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    assert told == outreach._MODULES
    assert {*told, "__version__"} == {*outreach.__all__}
    assert len(outreach.__all__) == len({*outreach.__all__})
    for name in outreach.__all__:
        assert getattr(outreach, name) is not None
    assert {*outreach.__all__} <= {*dir(outreach)}


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
        "outreach_server.cli.lazy_commands",
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
    assert not modules & {"outreach.dispatch.runner", "outreach.providers.simulator"}
    assert {
        name for name in modules if name.startswith(("outreach_server.cli.campaigns.", "outreach_server.lists"))
    } == {
        "outreach_server.cli.campaigns.campaigns",
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
