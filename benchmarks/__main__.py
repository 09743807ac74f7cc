"""The command: `make bench`, or `python -m benchmarks` where everything is installed."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from benchmarks.base import check_out
from benchmarks.processes import end_when_told
from benchmarks.results import Results
from benchmarks.rows import ROWS
from benchmarks.settings import ROOT, Settings
from benchmarks.table import document, machine, render

_BUILD: Final = ROOT / "build"


def main(arguments: list[str] | None = None) -> int:
    """Measure what was asked for, print the table and write the JSON file; return the exit status.

    A figure that is not what is wanted is shown as such, and is no failure of the command.
    """
    given = _parser().parse_args(arguments)
    end_when_told()
    begun = time.monotonic()

    def say(what: str) -> None:
        print(f"[{time.monotonic() - begun:6.0f} s] {what}", file=sys.stderr, flush=True)

    try:
        base = check_out(given.base, given.kept) if given.base else None
    except RuntimeError as error:
        print(f"No version {given.base!r} to compare with: {error}", file=sys.stderr)
        return 1
    results = Results()
    with tempfile.TemporaryDirectory(prefix="outreach-bench-", dir=given.directory) as name:
        settings = Settings(
            directory=Path(name), kept=given.kept, rounds=given.rounds, quick=given.quick, base=base, say=say
        )
        for row in given.rows:
            results.add(ROWS[row](settings))
    on = machine()
    given.json.parent.mkdir(parents=True, exist_ok=True)
    written = document(results, on, rounds=given.rounds, quick=given.quick, base=given.base or None)
    given.json.write_text(json.dumps(written, indent=2) + "\n", encoding="utf-8")
    say(f"written to {given.json}")
    print(render(results, on, rounds=given.rounds, quick=given.quick))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Compare outreach with other sides.")
    parser.add_argument("--rows", type=_rows, default=list(ROWS), help=f"of {','.join(ROWS)}; all by default")
    parser.add_argument("--rounds", type=_rounds, default=5, help="how often each side is measured")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, which only show that it works")
    parser.add_argument("--base", metavar="REF", help="an earlier version that sends too")
    parser.add_argument("--json", type=Path, default=_BUILD / "bench.json", help="the file that is written")
    parser.add_argument("--kept", type=Path, default=_BUILD / "bench", help="where large databases are kept")
    parser.add_argument("--directory", type=Path, help="where databases of a run lie; deleted at its end")
    return parser


def _rows(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in ROWS]
    if unknown or not names:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown) or 'nothing'} is no row; there are {', '.join(ROWS)}")
    return names


def _rounds(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is no number of rounds")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
