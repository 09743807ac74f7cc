"""What stands for the commands of a page's shell blocks while they are run.

`outreach-server` is the real one, with two differences: an argument that stands for something, such as `CAMPAIGN_ID`,
is the newest that there is; and what serves goes on in the background, on a free port, while the page goes on.
`curl` is the real one, and asks that server where a page says port 8000.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

SERVING: Final = frozenset({"serve", "worker"})
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
    "KEY_ID": ("keys", "list"),
    "CAMPAIGN_ID": ("campaigns", "list"),
    "DISPATCH_ID": ("dispatches", "unknown"),
}
_NEWEST_FIRST: Final = frozenset({"CAMPAIGN_ID"})
_PLACEHOLDER: Final = re.compile(r"\b[A-Z]+_ID\b|\bPHONE\b|\bAPI_KEY\b")


def main(name: str, arguments: Sequence[str]) -> int:
    """Run a command in the place of a real one, and return its exit status."""
    words = [_PLACEHOLDER.sub(lambda found: stands_for(found[0]), word) for word in arguments]
    if name == "curl":
        return ask([word.replace(":8000", f":{PORT.read_text()}") for word in words] if PORT.exists() else words)
    if words and words[0] in SERVING:
        return serve(words)
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


def serve(words: Sequence[str]) -> int:
    """Begin to serve, wait until it is said where, and leave it running."""
    log = Path(f"{words[0]}.log")
    with log.open("w") as output:
        port = ["--port", "0"] if words[0] == "serve" else []
        process = subprocess.Popen([*program(), *words, *port], stdout=output, stderr=output, start_new_session=True)
    with PROCESSES.open("a") as processes:
        processes.write(f"{process.pid}\n")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        said = re.search(r"http://127\.0\.0\.1:(\d+)", log.read_text("utf-8"))
        if said:
            PORT.write_text(said[1])
            return 0
        time.sleep(0.05)
    sys.stderr.write(log.read_text("utf-8"))
    return 1


def ask(words: Sequence[str]) -> int:
    """Run the real curl, which is found behind this one."""
    path = os.pathsep.join(os.environ["PATH"].split(os.pathsep)[1:])
    real = shutil.which("curl", path=path)
    if real is None:
        sys.exit("curl is not there.")
    return subprocess.run([real, *words], check=False).returncode
