"""An empty root for the executable: no Python, no shell, another user, and one directory that can be written."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

DATA: Final = "/data"
"""The directory that can be written, as the executable sees it."""

NOBODY: Final = 65_534

_GLIBC: Final = ("libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libutil.so.1", "libresolv.so.2")
_DEVICES: Final = ("null", "urandom")
_ENTER: Final = """\
set -e
root=$1 data=$2 chroot=$3
shift 3
mount --bind "$root" "$root"
mount --bind "$data" "$root/data"
mount --rbind /proc "$root/proc"
for device in null urandom; do mount --bind "/dev/$device" "$root/dev/$device"; done
mount -o remount,bind,ro "$root"
unset PATH PWD OLDPWD
exec $chroot "$root" "$@"
"""


@attrs.frozen(kw_only=True)
class Jail:
    """Where the executable is tried.

    Attributes:
        root: The directory that is its root.
        data: The directory that it sees as `/data`.
        program: The executable as it sees it, or as this process does where there is no jail.
        enter: What starts a command in the jail; empty where this machine allows none.
        words: What kind of a place it is.
    """

    root: Path
    data: Path
    program: str
    enter: Sequence[str]
    words: str

    @property
    def seen(self) -> str:
        """The directory for data, as the executable sees it."""
        return DATA if self.enter else str(self.data)

    def command(self, *arguments: str) -> list[str]:
        """Return what runs the executable."""
        return [*self.enter, self.program, *arguments]

    def environment(self, more: Mapping[str, str]) -> dict[str, str]:
        """Return the variables of a command: those given, and what starts the jail needs, which it takes away."""
        return {
            "TMPDIR": f"{self.seen}/tmp",  # noqa: S108 - in the directory for data
            **more,
            **({"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"} if self.enter else {}),
        }

    def give(self) -> None:
        """Let the other user have what lies in the directory for data."""
        if os.geteuid() == 0 and self.enter:
            for path in (self.data, *self.data.rglob("*")):
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def build(place: Path, executable: Path) -> Jail:
    """Return a jail with an executable, a file or what lies in a directory of its own.

    Raises:
        AssertionError: The executable needs a library that belongs to neither glibc nor zlib.
    """
    root, data = place / "root", place / "data"
    (data / "tmp").mkdir(parents=True)
    for directory in ("proc", "dev", "data", "app"):
        (root / directory).mkdir(parents=True)
    for device in _DEVICES:
        (root / "dev" / device).touch()
    if executable.parent.joinpath("_internal").is_dir():
        shutil.copytree(executable.parent, root / "app", dirs_exist_ok=True)
    else:
        shutil.copy2(executable, root / "app" / executable.name)
    for library in _libraries(executable):
        target = root / library.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(library, target)
        target.chmod(0o755)
    place.chmod(0o755)
    enter, words = _entrance(root, data)
    program = f"/app/{executable.name}" if enter else str(root / "app" / executable.name)
    made = Jail(root=root, data=data, program=program, enter=enter, words=words)
    made.give()
    return made


def _libraries(executable: Path) -> list[Path]:
    """Return the loader, glibc, and the one library beside it that the executable names."""
    told = subprocess.run(["ldd", str(executable)], capture_output=True, text=True, check=True).stdout
    found = [Path(path) for path in re.findall(r"(/\S+)\s+\(0x", told)]
    others = [
        path.name for path in found if not re.match(r"(ld-linux|libc\.|libz\.|libdl|libpthread|libm\.)", path.name)
    ]
    assert others == [], f"needs libraries of the system: {others}"
    libc = next(path for path in found if path.name.startswith("libc."))
    return [*found, *(libc.with_name(name) for name in _GLIBC if libc.with_name(name).exists())]


def _entrance(root: Path, data: Path) -> tuple[list[str], str]:
    """Return what starts a command in the jail, by what this machine allows."""
    chroot, unshare, shell = shutil.which("chroot", path="/usr/sbin:/sbin:/usr/bin"), shutil.which("unshare"), "/bin/sh"
    if chroot is not None and unshare is not None:
        as_root = os.geteuid() == 0
        alone = [unshare, "--mount"] if as_root else [unshare, "--user", "--map-root-user", "--mount"]
        user = f"{chroot} --userspec={NOBODY}:{NOBODY}" if as_root else chroot
        enter = [*alone, shell, "-c", _ENTER, "jail", str(root), str(data), user]
        (root / "app" / "probe").write_text("", encoding="utf-8")
        tried = subprocess.run(
            [*alone, shell, "-c", _ENTER.replace("exec $chroot", "exit 0 #"), "jail", str(root), str(data), user],
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
            capture_output=True,
            check=False,
        )
        if tried.returncode == 0:
            who = f"user {NOBODY}" if as_root else "this user (not root: another one is NOT CHECKED)"
            return enter, f"an empty root, read-only but for one directory, without Python and shell, as {who}"
    return [], "NOT CHECKED in an empty root, which this machine does not allow: with an empty environment instead"
