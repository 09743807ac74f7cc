"""A reader who goes through a page, and types and runs what it shows, in a directory of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

import attrs

from tests.documents.blocks import PYTHON, ROOT, SHELL, Block
from tests.documents.fragment import is_fragment
from tests.documents.stand_ins import PROCESSES

PATIENCE_SECONDS: Final = 180

_STAND_IN: Final = """\
#!{python}
import sys
sys.path.insert(0, {root!r})
from tests.documents.stand_ins import main
sys.exit(main({name!r}, sys.argv[1:]))
"""


@attrs.frozen(kw_only=True)
class Session:
    """The directory in which a page is gone through.

    Attributes:
        place: The directory.
    """

    place: Path

    def begin(self) -> None:
        """Put the stand-ins where the shell finds them first."""
        commands = self.place / "commands"
        commands.mkdir()
        for name in ("outreach-server", "curl"):
            script = commands / name
            script.write_text(_STAND_IN.format(python=sys.executable, root=str(ROOT), name=name), encoding="utf-8")
            script.chmod(0o755)
        activate = self.place / ".venv" / "bin" / "activate"
        activate.parent.mkdir(parents=True)
        activate.touch()

    def end(self) -> None:
        """End what serves."""
        processes = self.place / PROCESSES
        for number in processes.read_text().split() if processes.exists() else ():
            with suppress(ProcessLookupError):
                os.killpg(int(number), signal.SIGTERM)

    def run(self, block: Block) -> None:
        """Do what a block shows.

        Raises:
            AssertionError: It did not work as it is printed.
        """
        if block.title is not None:
            file = self.place / block.title
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text, encoding="utf-8")
        if block.not_run is not None:
            return
        if block.language in SHELL:
            self._run_shell(block)
        elif block.language in PYTHON:
            self._run_python(block)

    def _run_shell(self, block: Block) -> None:
        """Run a script in one shell with those before it, as far as variables go."""
        kept = "set -a; [ ! -f variables ] || . ./variables; set +a"
        self._check(block, ["bash", "-euo", "pipefail", "-c", f"{kept}\n{block.text}\nexport -p > variables"])

    def _run_python(self, block: Block) -> None:
        """Run a program, a fragment of one, or tests."""
        name = block.title or f"block_{block.line}.py"
        (self.place / name).write_text(block.text, encoding="utf-8")
        if name.startswith("test_"):
            self._check(
                block,
                [
                    sys.executable,
                    "-m",
                    "pytest",
                    "-q",
                    "-W",
                    "error",
                    "-p",
                    "no:cacheprovider",
                    "-p",
                    "no:asyncio",
                    name,
                ],
            )
        elif is_fragment(block.text, block.place):
            self._check(block, [sys.executable, "-W", "error", "-m", "tests.documents.fragment", name])
        else:
            self._check(block, [sys.executable, "-W", "error", name])

    def _check(self, block: Block, command: list[str]) -> None:
        path = os.pathsep.join([str(self.place / "commands"), str(Path(sys.executable).parent), os.environ["PATH"]])
        hidden = {name for name in os.environ if name.startswith(("OUTREACH_", "PYTEST_"))}
        environment = {name: value for name, value in os.environ.items() if name not in hidden}
        done = subprocess.run(
            command,
            cwd=self.place,
            env=environment | {"PATH": path, "PYTHONPATH": str(ROOT), "HOME": str(self.place)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{block.place} does not work as it is printed:\n{block.text}\n{done.stdout}"
