"""Which user a plain process runs as: one of the job's own, where that is possible."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from agents.drivers.base import Task

# The range that systemd keeps for users made on the fly: no account of the machine lies in it.
FIRST_USER = 61_184
USERS = 4_336

PRIVILEGES = ("--clear-groups", "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all")


class JobUsers:
    """Picks a user id by job, so that jobs can neither signal nor read each other.

    Needs root, util-linux's setpriv, and an interpreter and a state folder that other users can
    reach; ``reason`` says which one is missing, and then commands run as the agent's own user.
    """

    def __init__(self, state: Path) -> None:
        self.setpriv = shutil.which("setpriv") or ""
        self.reason = self._obstacle(state)

    def become(self, task: Task, workspace: Path) -> list[str]:
        """Words to put before the command; gives the workspace to the job's user."""
        if not self.reason:
            user = _user_of(task.key)
            for path in [workspace, *workspace.rglob("*")]:
                os.chown(path, user, user, follow_symlinks=False)
            return [self.setpriv, f"--reuid={user}", f"--regid={user}", *PRIVILEGES]
        return [self.setpriv, "--no-new-privs"] if self.setpriv else []

    def _obstacle(self, state: Path) -> str:
        if os.getuid() != 0:
            return "commands run as the agent's user, which is not root"
        if not self.setpriv:
            return "commands run as root: setpriv of util-linux is not installed"
        try:
            user = [f"--reuid={FIRST_USER}", f"--regid={FIRST_USER}", *PRIVILEGES]
            reach = ["/bin/sh", "-c", 'cd "$1" && exec "$2" -I -c ""', "sh"]
            tried = subprocess.run(
                [self.setpriv, *user, *reach, str(state), sys.executable],
                capture_output=True,
                timeout=20,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"commands run as root: {error}"
        if tried.returncode:
            return (
                "commands run as root: other users cannot reach the interpreter or the state folder"
            )
        return ""


def _user_of(key: str) -> int:
    found = re.match(r"j(\d+)", key)
    return FIRST_USER + int(found.group(1) if found else 0) % USERS
