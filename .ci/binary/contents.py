"""What is in the executable: the parts with their versions and licences, and its libraries without debug symbols."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

from bundled import bundled_libraries, texts

Entries = Sequence[tuple[str, str, str]]
"""PyInstaller's: the name in the executable, the file here, the kind."""

PACKAGE = "outreach_server"
_LICENCE = re.compile(r"(^|/)(licen[cs]e|copying|notice|authors)[^/]*$", re.IGNORECASE)
_USELESS = re.compile(r"\.(pyx|pxd|pyi|c|h|cpp)$|\.dist-info/(RECORD|INSTALLER|REQUESTED|direct_url\.json)$")
_VIEWER = {"offapi/swagger_bundle.js", "offapi/swagger_style.css"}


def trimmed(datas: Entries) -> list[tuple[str, str, str]]:
    """Return the data files without sources of C, traces of the installation, and viewers that /docs does not use."""
    return [
        entry
        for entry in datas
        if not _USELESS.search(entry[0]) and (not entry[0].startswith("offapi/") or entry[0] in _VIEWER)
    ]


def stripped(binaries: Entries, place: Path) -> list[tuple[str, str, str]]:
    """Return the libraries without what only a debugger needs.

    Those in a directory `*.libs` stay as they are: they were relocated when their wheel was made, and would break.
    """
    found = []
    for name, source, kind in binaries:
        if ".libs/" not in name and kind in {"BINARY", "EXTENSION"}:
            copy = place / "stripped" / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copy)
            copy.chmod(0o755)
            subprocess.run(["strip", "--strip-unneeded", str(copy)], check=True)
            source = str(copy)
        found.append((name, source, kind))
    return found


def described(analysis: Any, place: Path, *, version: str, commit: str) -> list[tuple[str, str, str]]:
    """Write what is in the executable, and return the entries of the two files."""
    sources = {Path(source).resolve() for _, source, _ in (*analysis.pure, *analysis.binaries, *analysis.datas)}
    parts = sorted(_parts_of(sources), key=lambda part: part.name.lower())
    libraries = _system_libraries(analysis.binaries)
    bundled = bundled_libraries(name for name, _, _ in analysis.binaries)
    told = {
        "version": version,
        "commit": commit,
        "parts": {part.name: part.version for part in parts},
        "libraries": libraries,
    }
    place.mkdir(parents=True, exist_ok=True)
    build, licences = place / "build.json", place / "THIRD-PARTY.txt"
    build.write_text(json.dumps(told, indent=1) + "\n", "utf-8")
    licences.write_text(_licences(parts, libraries, bundled), "utf-8")
    return [(f"{PACKAGE}/{file.name}", str(file), "DATA") for file in (build, licences)]


def _parts_of(sources: Iterable[Path]) -> list[Distribution]:
    owners = {
        Path(str(part.locate_file(file))).resolve(): part for part in distributions() for file in part.files or ()
    }
    return list({owner.name: owner for source in sources if (owner := owners.get(source)) is not None}.values())


def _system_libraries(binaries: Entries) -> dict[str, str]:
    """Return the shared libraries that come from this machine, with the package that each is of where dpkg tells."""
    own = tuple(str(Path(place).resolve()) for place in (sys.prefix, sys.base_prefix))
    found = {}
    for name, source, _ in sorted(binaries):
        real = os.path.realpath(source)
        if not real.startswith(own):
            found[name] = _package_of(real) or "unknown package"
    return found


def _package_of(file: str) -> str | None:
    if shutil.which("dpkg-query") is None:
        return None
    # What /lib holds may be known as /usr/lib, and the other way round.
    for known in (file, file.removeprefix("/usr"), f"/usr{file}"):
        owner = subprocess.run(["dpkg-query", "--search", known], capture_output=True, text=True, check=False).stdout
        if owner:
            name = owner.split(": ")[0]
            shown = subprocess.run(
                ["dpkg-query", "--show", "--showformat=${Package} ${Version}", name],
                capture_output=True,
                text=True,
                check=False,
            )
            return shown.stdout or None
    return None


def _licences(parts: Sequence[Distribution], libraries: dict[str, str], bundled: dict[str, str]) -> str:
    """Return the texts of all licences, each below the name of its part.

    Raises:
        SystemExit: A part says nothing of its licence.
    """
    python = Path(sysconfig.get_path("stdlib")) / "LICENSE.txt"
    own = (Path(__file__).resolve().parents[2] / "LICENSE").read_text("utf-8")
    sections = [_section("outreach", "Apache-2.0", [own])]
    sections.append(_section(f"Python {sys.version.split()[0]}", "PSF-2.0", [python.read_text("utf-8")]))
    silent = []
    for part in parts:
        name, files = _named_licence(part), _licence_files(part)
        if not name and not files:
            silent.append(part.name)
        sections.append(_section(f"{part.name} {part.version}", name, files))
    if silent:
        sys.exit(f"No licence is known of: {', '.join(silent)}")
    for package in sorted(set(libraries.values())):
        names = ", ".join(name for name, owner in libraries.items() if owner == package)
        notice = Path("/usr/share/doc") / package.partition(" ")[0] / "copyright"
        told = [notice.read_text("utf-8", errors="replace")] if notice.is_file() else []
        sections.append(_section(f"{package} ({names})", "", told))
    sections += [_section(library, licence, []) for library, licence in bundled.items()]
    sections.append(_section("PyInstaller's loader", "GPL-2.0-or-later with an exception for what it builds", []))
    sections += [_section(f"The text of the {name}", "", [text]) for name, text in texts().items()]
    return "\n".join(sections)


def _named_licence(part: Distribution) -> str:
    told = part.metadata
    classified = [one.rpartition(" :: ")[2] for one in told.get_all("Classifier") or () if one.startswith("License ::")]
    short = next((line for line in (told["License"] or "").splitlines() if line.strip()), "")
    return told["License-Expression"] or ", ".join(classified) or short


def _licence_files(part: Distribution) -> list[str]:
    files = [file for file in part.files or () if ".dist-info" in str(file) and _LICENCE.search(str(file))]
    return [Path(str(part.locate_file(file))).read_text("utf-8", errors="replace") for file in sorted(files)]


def _section(title: str, name: str, texts: Sequence[str]) -> str:
    rule = "=" * 100
    head = [rule, title, *([f"Licence: {name}"] if name else []), rule]
    return "\n".join([*head, *(text.rstrip() for text in texts), ""])
