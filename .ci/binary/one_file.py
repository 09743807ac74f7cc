"""Make one file of a directory with a program: `launcher.c`, compiled, and the directory as a compressed tar."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import subprocess
import tarfile
from pathlib import Path

LAUNCHER = Path(__file__).with_name("launcher.c")
COMPILE = ("cc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-s")
_BLOCK = 4096


def can_compile() -> bool:
    """Return whether this machine has a compiler of C, and zlib to build with."""
    try:
        subprocess.run(
            [*COMPILE, "-x", "c", "-include", "zlib.h", "-o", "/dev/null", "-", "-lz"],
            input=b"int main(void) { return 0; }",
            capture_output=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def write(directory: Path, target: Path, **other: int) -> None:
    """Write one file, in which order, times and owners do not depend on the build.

    Args:
        directory: What it unpacks.
        target: The file.
        other: What the launcher is told otherwise than it is, for tests.
    """
    found = sorted(directory.rglob("*"))
    sizes = [path.stat().st_size for path in found if path.is_file() and not path.is_symlink()]
    archive = _tar(directory, found)
    packed = gzip.compress(archive, compresslevel=6, mtime=0)
    told = {
        "FILES": len(sizes),
        "BYTES": sum(sizes),
        # Each file, link and directory takes whole blocks.
        "SPACE": sum(-(-size // _BLOCK) * _BLOCK for size in sizes) + (len(found) - len(sizes)) * _BLOCK,
        "PACKED": len(packed),
        **other,
    }
    digest = hashlib.sha256(archive).hexdigest()[:16]
    defined = [f'-DDIGEST="{digest}"', *(f"-D{name}={value}LL" for name, value in told.items())]
    subprocess.run([*COMPILE, *defined, "-o", str(target), LAUNCHER.name, "-lz"], cwd=LAUNCHER.parent, check=True)
    with target.open("ab") as file:
        file.write(packed)


def _tar(directory: Path, found: list[Path]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in found:
            entry = tarfile.TarInfo(path.relative_to(directory).as_posix())
            entry.mode = 0o755 if os.access(path, os.X_OK) else 0o644
            content = b""
            if path.is_symlink():
                entry.type, entry.linkname = tarfile.SYMTYPE, os.readlink(path)
            elif path.is_dir():
                entry.type = tarfile.DIRTYPE
            else:
                content = path.read_bytes()
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()
