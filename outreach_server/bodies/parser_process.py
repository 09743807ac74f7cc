"""The helper process for one large body or list: `python -m outreach_server.bodies.parser_process BODY READING`.

It reads the file by the JSON of READING, and writes to stdout: of a body all but the contacts and then chunks of these,
of an uploaded list its frames. It imports little, so that it starts fast; its memory is freed with it, and it can be
killed when the client has gone.
"""

from __future__ import annotations

import gc
import json
import marshal
import os
import pickle
import struct
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final

from outreach import OutreachError
from outreach.server_support import described
from outreach_server.bodies.reading import Head, ParseOptions, read_contacts

LENGTH: Final = struct.Struct("<I")
"""The length before each frame; an empty frame is the last one."""

_NICENESS: Final = 10

FirstFrame = Head | OutreachError
"""The first frame, pickled: all but the contacts, or the error."""


def read_body(body: Path, reading: ParseOptions, out: IO[bytes]) -> None:
    """Read a body, and write the frames."""
    write = partial(_write, out)
    try:
        read = read_contacts(body.read_bytes(), reading)
    except OutreachError as error:
        write(pickle.dumps(error))
    else:
        write(pickle.dumps(read.head))
        for chunk in read.chunks:
            # Tuples, because marshal writes them several times as fast as pickle.
            write(marshal.dumps([tuple(recipient) for recipient in chunk]))
    write(b"")


def read_uploaded_list(file: Path, options: Mapping[str, Any], out: IO[bytes]) -> None:
    """Read an uploaded list, and write its frames, each with its kind; the last one may be an error."""
    # Larger than what a body needs.
    from outreach_server.lists.reading import ListOptions, read_list

    write = partial(_write, out)
    try:
        for frame in read_list(file, ListOptions(**options)):
            write(marshal.dumps(tuple(frame)))
    except OutreachError as error:
        write(marshal.dumps(("error", pickle.dumps(error))))
    write(b"")


def _write(out: IO[bytes], frame: bytes) -> None:
    out.write(LENGTH.pack(len(frame)))
    out.write(frame)
    out.flush()


def main(body: str, given: str) -> None:
    """Run the helper process for a body's file and the file of its options in JSON."""
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    # Its last words go into the server's log.
    sys.excepthook = _say_where
    options = json.loads(Path(given).read_text("utf-8"))
    if "list" in options:
        read_uploaded_list(Path(body), options["list"], sys.stdout.buffer)
        return
    # There is no cyclic garbage, and searching for it would double the time.
    gc.disable()
    read_body(Path(body), ParseOptions(**options), sys.stdout.buffer)


def _say_where(_kind: type[BaseException], error: BaseException, _raised: TracebackType | None) -> None:
    sys.stderr.write(f"{described(error)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
