"""The helper process for one large body: `python -m outreach_server.parser_process BODY READING`.

It reads the body in a file, as the JSON of READING says, and writes to its standard output what came of it and then the
contacts, some at a time, while the server writes those before. It imports little, so that it begins at once, and ends
with its body: what it has allocated is gone with it, and it can be killed when the client goes away.
"""

from __future__ import annotations

import gc
import json
import marshal
import os
import pickle
import struct
import sys
from pathlib import Path
from typing import IO, Final

from outreach import NewCallCampaign, NewSmsCampaign, OutreachError
from outreach_server.reading import ParseOptions, read_campaign

LENGTH: Final = struct.Struct("<I")
"""Before each frame: its length. A frame of no bytes is the last one."""

_NICENESS: Final = 5

FirstFrame = NewSmsCampaign | NewCallCampaign | OutreachError
"""What the first frame holds, pickled: the campaign that is asked for, or why there is none."""


def read_body(body: Path, reading: ParseOptions, out: IO[bytes]) -> None:
    """Read a body, and write the frames."""

    def write(frame: bytes) -> None:
        out.write(LENGTH.pack(len(frame)))
        out.write(frame)
        out.flush()

    try:
        read = read_campaign(body.read_bytes(), reading)
    except OutreachError as error:
        write(pickle.dumps(error))
    else:
        write(pickle.dumps(read.campaign))
        for chunk in read.chunks:
            # Plain tuples: marshal knows no others, and is several times as fast as pickle.
            write(marshal.dumps([tuple(recipient) for recipient in chunk]))
    write(b"")


def main(body: str, reading: str) -> None:
    """Be the helper process: read the body in a file, as some JSON says."""
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    # Nothing here goes round in circles, and looking for what does would take as long as the work.
    gc.disable()
    read_body(Path(body), ParseOptions(**json.loads(reading)), sys.stdout.buffer)


if __name__ == "__main__":
    main(*sys.argv[1:])
