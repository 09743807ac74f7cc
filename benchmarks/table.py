"""The table that is printed and the JSON file that is written."""

from __future__ import annotations

import os
import platform
import sqlite3
import statistics
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from benchmarks.results import Comparison, Figure, Results, Wanted

_COMPARED = ("row", "case", "unit", "ours", "other", "against", "ratio", "low-high", "wanted", "")
_ALONE = ("row", "case", "what", "median", "low-high", "wanted", "")


def machine() -> dict[str, Any]:
    """Return on what was measured."""
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load_average": os.getloadavg()[0],
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }


def render(results: Results, on: dict[str, Any], *, rounds: int, quick: bool) -> str:
    """Return the tables as they are printed, in Markdown."""
    sizes = ", sizes that only try it out: the figures mean nothing" if quick else ""
    head = (
        f"{on['at']}: {on['cores']} cores, {on['system']}, Python {on['python']}, SQLite {on['sqlite']}, "
        f"load average {on['load_average']:.1f} at the end; {rounds} round{'' if rounds == 1 else 's'}{sizes}."
    )
    parts = [head]
    if results.comparisons:
        parts.append(
            _markdown(_COMPARED, [_compared(one, judge=not quick) for one in results.comparisons], numbers={3, 4, 6})
        )
    if results.figures:
        parts.append(_markdown(_ALONE, [_alone(one, judge=not quick) for one in results.figures], numbers={3}))
    if results.notes:
        parts.append("\n".join(f"- {note}" for note in results.notes))
    return "\n\n".join(parts)


def document(results: Results, on: dict[str, Any], *, rounds: int, quick: bool, base: str | None) -> dict[str, Any]:
    """Return everything for the JSON file."""
    return {
        "machine": on,
        "rounds": rounds,
        "quick": quick,
        "base": base,
        "comparisons": [one.as_json() for one in results.comparisons],
        "figures": [one.as_json() for one in results.figures],
        "notes": results.notes,
    }


def _compared(one: Comparison, *, judge: bool) -> tuple[str, ...]:
    ratio = statistics.median(one.ratios)
    return (
        one.row,
        one.case,
        one.unit,
        _number(statistics.median(one.ours)),
        _number(statistics.median(one.other)),
        one.against,
        _number(ratio),
        f"{_number(min(one.ratios))}-{_number(max(one.ratios))}",
        *_judged(one.wanted, ratio, judge=judge),
    )


def _alone(one: Figure, *, judge: bool) -> tuple[str, ...]:
    median = statistics.median(one.values)
    return (
        one.row,
        one.case,
        one.what,
        _number(median),
        f"{_number(min(one.values))}-{_number(max(one.values))}",
        *_judged(one.wanted, median, judge=judge),
    )


def _judged(wanted: Wanted | None, value: float, *, judge: bool) -> tuple[str, str]:
    if wanted is None:
        return "", ""
    if not judge:
        return str(wanted), ""
    return str(wanted), "kept" if wanted.kept(value) else "MISSED"


_HUNDRED = 100.0


def _number(value: float) -> str:
    """Return a figure with three digits that count."""
    if abs(value) >= _HUNDRED:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: set[int]) -> str:
    widths = [max(len(cells[column]) for cells in (head, *rows)) for column in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.rjust(width) if column in numbers else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    rule = ["-" * (width - 1) + ":" if column in numbers else "-" * width for column, width in enumerate(widths)]
    return "\n".join([line(head), f"|{'|'.join(f' {cell} ' for cell in rule)}|", *map(line, rows)])
