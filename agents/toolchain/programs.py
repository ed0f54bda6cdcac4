"""Finds runc and CRIU, in the private prefix or on the system, and says what is missing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

CRIU_AT_LEAST = (4, 2)
"""Older ones cannot dump a TCP socket on kernels >= 6.16."""
RUNC_AT_LEAST = (1, 1)
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """The programs that containers need; ``None`` where one is absent, and ``missing`` says why."""

    runc: Path | None
    criu: Path | None
    path: str
    """PATH for runc, which looks for ``criu`` and ``tar`` in it."""
    missing: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        return self.runc is not None and self.criu is not None


def find(prefix: Path) -> Toolchain:
    """Look in ``prefix/bin`` first, then on the system, and accept only what is new enough."""
    path = os.pathsep.join([str(prefix / "bin"), os.environ.get("PATH", ""), SYSTEM_PATH])
    runc, runc_reason = _accept("runc", RUNC_AT_LEAST, path)
    criu, criu_reason = _accept("criu", CRIU_AT_LEAST, path)
    reasons = tuple(reason for reason in (runc_reason, criu_reason) if reason)
    if criu is not None:
        # An older criu earlier in PATH must not be the one that runc takes.
        path = os.pathsep.join([str(criu.parent), path])
    return Toolchain(runc=runc, criu=criu, path=path, missing=reasons)


def version(program: Path) -> tuple[int, ...]:
    """The first dotted number that ``--version`` prints; empty when it does not run."""
    try:
        done = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    match = re.search(r"(\d+(?:\.\d+)+)", done.stdout) if done.returncode == 0 else None
    return tuple(int(part) for part in match[1].split(".")) if match else ()


def _accept(name: str, least: tuple[int, ...], path: str) -> tuple[Path | None, str]:
    wanted = ".".join(map(str, least))
    reason = f"{name} >= {wanted} is not installed: run `make node`"
    seen: set[Path] = set()
    for folder in path.split(os.pathsep):
        found = shutil.which(name, path=folder) if folder else None
        if found is None or Path(found) in seen:
            continue
        seen.add(Path(found))
        number = version(Path(found))
        if number >= least:
            return Path(found), ""
        reason = f"{name} {'.'.join(map(str, number)) or 'at ' + found} is older than {wanted}"
    return None, reason
