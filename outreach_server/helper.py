"""The helper process for one large body: `python -m outreach_server.helper DIRECTORY`.

It finds there the body and how to read it, and writes the contacts in frames, and the rest, beside them. Only files
go between the processes: a helper that dies leaves no half of a conversation.

A process of its own for each body: what it has allocated is gone with it, it can be killed when the client goes
away, and it runs at a lower priority than the server. (`anyio.to_process` would run the host's main script once
more in its workers, and keep them and their memory for minutes.)
"""

from __future__ import annotations

import marshal
import os
import pickle
import struct
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from subprocess import DEVNULL
from typing import IO, Final

import anyio
from anyio import to_thread

from outreach import NewCallCampaign, NewSmsCampaign, OutreachError, PreparedRecipient
from outreach_server.body import BODY_FILE
from outreach_server.reading import Reading, read_campaign

_FRAMES_FILE: Final = "recipients.frames"
_READING_FILE: Final = "reading.pickle"
_OUTCOME_FILE: Final = "outcome.pickle"
_LENGTH: Final = struct.Struct("<I")
_NICENESS: Final = 10

Outcome = NewSmsCampaign | NewCallCampaign | OutreachError


class HelperFailed(RuntimeError):
    """The helper process ended without an outcome."""


async def read_in_helper(directory: Path, reading: Reading) -> NewSmsCampaign | NewCallCampaign:
    """Have the body in a directory read by a helper process; the contacts are in `frames` then.

    Raises:
        OutreachError: What reading the body raised.
        HelperFailed: The process died.
    """
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    await to_thread.run_sync((directory / _READING_FILE).write_bytes, pickle.dumps(reading))
    command = [sys.executable, "-m", __name__, str(directory)]
    done = await anyio.run_process(command, stdin=DEVNULL, stdout=DEVNULL, check=False, env=environment)
    if done.returncode != 0:
        raise HelperFailed(f"exit status {done.returncode}: {done.stderr[-2000:].decode(errors='replace')}")
    written = await to_thread.run_sync((directory / _OUTCOME_FILE).read_bytes)
    outcome: Outcome = pickle.loads(written)  # noqa: S301 - written by our own process
    if isinstance(outcome, OutreachError):
        raise outcome
    return outcome


async def frames(directory: Path) -> AsyncIterator[list[PreparedRecipient]]:
    """Yield the contacts that the helper has made ready, some at a time."""
    file = await to_thread.run_sync(lambda: (directory / _FRAMES_FILE).open("rb"))
    try:
        while (chunk := await to_thread.run_sync(_read_frame, file)) is not None:
            yield chunk
    finally:
        file.close()


def _read_frame(file: IO[bytes]) -> list[PreparedRecipient] | None:
    head = file.read(_LENGTH.size)
    if not head:
        return None
    rows = marshal.loads(file.read(*_LENGTH.unpack(head)))  # noqa: S302 - written by our own process
    return [PreparedRecipient._make(row) for row in rows]


def _work(directory: Path, reading: Reading) -> Outcome:
    try:
        read = read_campaign((directory / BODY_FILE).read_bytes(), reading)
        with (directory / _FRAMES_FILE).open("xb") as file:
            for chunk in read.chunks:
                # Plain tuples: marshal knows no others, and is several times as fast as pickle.
                frame = marshal.dumps([tuple(recipient) for recipient in chunk])
                file.write(_LENGTH.pack(len(frame)) + frame)
    except OutreachError as error:
        return error
    return read.campaign


def main() -> None:
    """Read the body in the directory that the command line names."""
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    directory = Path(sys.argv[1])
    reading = pickle.loads((directory / _READING_FILE).read_bytes())  # noqa: S301 - written by our own server
    (directory / _OUTCOME_FILE).write_bytes(pickle.dumps(_work(directory, reading)))


if __name__ == "__main__":
    main()
