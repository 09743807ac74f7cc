"""What stands for the commands of a page's shell blocks while they are run.

`outreach-server` is the real one, with these differences: an argument that stands for something, such as `CAMPAIGN_ID`,
is the newest that there is; what serves goes on in the background, on a free port, while the page goes on; an account
is connected to the stand-in that the page has started, else to one of its own; a test message is watched until it is
accepted; and where a server keeps its backups is a directory of the page's.
`curl` is the real one, and asks that server where a page says port 8000.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

SERVING: Final = frozenset({"serve", "worker", "stand-in"})
GIVEN: Final = Path("given.json")
"""What a page finds at its beginning, by the words that stand for it."""
PROCESSES: Final = Path("processes.txt")
PORT: Final = Path("port.txt")
PATIENCE_SECONDS: Final = 120

_LISTS: Final = {
    "AGENT_ID": ("agents", "list"),
    "ACCOUNT_ID": ("accounts", "list"),
    "TRUNK_ID": ("trunks", "list"),
    "FLOW_ID": ("flows", "list"),
    "SCHEDULE_ID": ("schedules", "list"),
    "KEY_ID": ("keys", "list"),
    "CAMPAIGN_ID": ("campaigns", "list"),
    "DISPATCH_ID": ("dispatches", "unknown"),
}
_BACKUPS: Final = "/var/backups/outreach"
_NEWEST_FIRST: Final = frozenset({"CAMPAIGN_ID"})
_PLACEHOLDER: Final = re.compile(r"\b[A-Z]+_ID\b|\bPHONE\b|\bAPI_KEY\b")


def main(name: str, arguments: Sequence[str]) -> int:
    """Run a command in the place of a real one, and return its exit status."""
    words = [_PLACEHOLDER.sub(lambda found: stands_for(found[0]), word) for word in arguments]
    words = [word.replace(_BACKUPS, "backups") for word in words]
    Path("backups").mkdir(exist_ok=True)
    if name == "curl":
        return ask([word.replace(":8000", f":{PORT.read_text()}") for word in words] if PORT.exists() else words)
    if words and words[0] in SERVING:
        return serve(words)
    if words[:2] == ["accounts", "connect"]:
        connect_to_stand_in(words[3], Path(words[words.index("--file") + 1]))
    if words[:1] == ["test-send"]:
        words += ["--wait", "3"]
    return subprocess.run([*program(), *words], check=False).returncode


def program() -> list[str]:
    """Return the real program."""
    return [sys.executable, "-m", "outreach_server"]


def stands_for(word: str) -> str:
    """Return what a word of a page stands for: what was given, or the newest that the command line lists."""
    given: dict[str, str] = json.loads(GIVEN.read_text("utf-8"))
    if word in given:
        return given[word]
    workspace = listed("workspaces", "list")[-1]["id"]
    if word == "WORKSPACE_ID":
        return str(workspace)
    found = listed(*_LISTS[word], workspace) if word in _LISTS else []
    if not found:
        sys.exit(f"There is nothing that {word} could stand for: make one in an earlier block, or do not run this one.")
    return str(found[0 if word in _NEWEST_FIRST else -1]["id"])


def listed(*words: str) -> list[Any]:
    """Return what a command of the real program lists."""
    done = subprocess.run([*program(), *words, "--json"], check=True, stdout=subprocess.PIPE, text=True)
    found: list[Any] = json.loads(done.stdout)
    return found


def connect_to_stand_in(provider: str, file: Path) -> None:
    """Write the credentials of a provider's stand-in to a file, having started it unless the page has."""
    if not Path("stand-in.log").exists():
        serve(["stand-in", provider, "--credentials", str(file)])


def serve(words: Sequence[str]) -> int:
    """Begin to serve, wait until it is said where, and leave it running."""
    environment = dict(os.environ)
    if words[0] == "serve":
        # Known before, because a page names it to the server too.
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            wanted = str(free.getsockname()[1])
        environment = {
            name: value.replace(":8000", f":{wanted}") if name == "OUTREACH_PUBLIC_URL" else value
            for name, value in environment.items()
        }
        words = [*words, "--port", wanted]
    port = begin([*program(), *words], Path(f"{words[0]}.log"), environment)
    if port is None:
        return 1
    if words[0] != "stand-in":
        PORT.write_text(port)
    return 0


def begin(command: Sequence[str], log: Path, environment: Mapping[str, str]) -> str | None:
    """Begin what serves, and leave it running; return its port once it says it, None where it ends before."""
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True, env=environment)
    with PROCESSES.open("a") as processes:
        processes.write(f"{process.pid}\n")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        said = re.search(r"http://127\.0\.0\.1:(\d+)", log.read_text("utf-8"))
        if said:
            return said[1]
        time.sleep(0.05)
    sys.stderr.write(log.read_text("utf-8"))
    return None


def ask(words: Sequence[str]) -> int:
    """Run the real curl, which is found behind this one."""
    path = os.pathsep.join(os.environ["PATH"].split(os.pathsep)[1:])
    real = shutil.which("curl", path=path)
    if real is None:
        sys.exit("curl is not there.")
    return subprocess.run([real, *words], check=False).returncode
