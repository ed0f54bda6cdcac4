"""Clone a job's git source into its workspace, with nothing asked, no hook run and no local file
read.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

from agents.addresses import without_login

SCHEMES = ("https", "http", "ssh")
TIMEOUT_S = 300.0

_REF = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_./@+-]{0,254}")
_URL = re.compile(r"([a-z]+)://[^\s\x00-\x1f]+")


class SourceError(Exception):
    """A source could not be fetched. ``id`` is stable, ``str()`` says what to do about it."""

    def __init__(self, id: str, sentence: str) -> None:
        super().__init__(sentence)
        self.id = id


def clone(
    url: str,
    ref: str,
    workspace: Path,
    *,
    schemes: Collection[str] = SCHEMES,
    timeout_s: float = TIMEOUT_S,
) -> str:
    """Fetch one branch, tag or commit (``HEAD`` if empty) without its history; return the commit's
    hash.

    The workspace must be empty. Raises ``SourceError`` with ``source-refused``,
    ``source-unreachable``, ``source-no-such-ref``, ``source-timeout`` or ``git-missing``; the
    workspace is then empty again.
    """
    wanted = ref or "HEAD"
    _check(url, wanted, schemes)
    git = shutil.which("git")
    if git is None:
        raise SourceError("git-missing", "This node has no git; upload the files instead.")
    workspace.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="clone-") as home:
        settings = _settings(schemes)
        environment = _environment(Path(home))
        try:
            for arguments in (
                ("init", "--quiet", "--template="),
                ("remote", "add", "--", "origin", url),
                ("fetch", "--quiet", "--depth=1", "--no-tags", "--", "origin", wanted),
                ("checkout", "--quiet", "--detach", "FETCH_HEAD"),
            ):
                _git([git, *settings, *arguments], workspace, environment, timeout_s, (url, wanted))
            command = [git, *settings, "rev-parse", "HEAD"]
            return _git(command, workspace, environment, timeout_s, (url, wanted)).strip()
        except BaseException:
            for item in workspace.iterdir():
                shutil.rmtree(item) if item.is_dir() and not item.is_symlink() else item.unlink()
            raise


def _check(url: str, ref: str, schemes: Collection[str]) -> None:
    match = _URL.fullmatch(url)
    if not match or match[1] not in schemes:
        allowed = ", ".join(f"{scheme}://" for scheme in schemes)
        raise SourceError(
            "source-refused",
            f"A git source must begin with one of {allowed}, unlike {without_login(url)!r}.",
        )
    # A host like "-oProxyCommand=..." would reach ssh as an option.
    if url.partition("://")[2].rpartition("@")[2].startswith("-"):
        told = f"{without_login(url)!r} is not the address of a repository."
        raise SourceError("source-refused", told)
    if not _REF.fullmatch(ref) or ".." in ref:
        raise SourceError("source-refused", f"{ref!r} is not the name of a branch, tag or commit.")


def _settings(schemes: Collection[str]) -> list[str]:
    settings = [
        "core.hooksPath=/dev/null",
        "core.fsmonitor=false",
        "advice.detachedHead=false",
        "credential.helper=",
        "safe.directory=*",
        "gc.auto=0",
        "protocol.allow=never",
        *(f"protocol.{scheme}.allow=always" for scheme in schemes),
    ]
    return [part for setting in settings for part in ("-c", setting)]


def _environment(home: Path) -> dict[str, str]:
    """Return an environment without the machine's own settings, keys and prompts."""
    return {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "HOME": str(home),
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "false",
        "SSH_ASKPASS": "false",
        "GIT_SSH_COMMAND": "ssh -oBatchMode=yes -oStrictHostKeyChecking=accept-new",
        "GIT_LFS_SKIP_SMUDGE": "1",
    } | {name: os.environ[name] for name in _PROXIES if name in os.environ}


_PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE")


def _git(
    command: Sequence[str],
    workspace: Path,
    environment: dict[str, str],
    timeout_s: float,
    subject: tuple[str, str],
) -> str:
    url, ref = subject
    shown = without_login(url)
    process = subprocess.Popen(
        command,
        cwd=workspace,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    with process:
        try:
            out, error = process.communicate(timeout=timeout_s)
        except BaseException as failure:
            # Git's own children (its transport) would outlive it.
            os.killpg(process.pid, signal.SIGKILL)
            if isinstance(failure, subprocess.TimeoutExpired):
                raise SourceError(
                    "source-timeout", f"Git did not get {shown} within {timeout_s:g} s; try again."
                ) from None
            raise
    if process.returncode == 0:
        return out.decode("utf-8", "replace")
    text = error.decode("utf-8", "replace").strip().replace(url, shown)
    if "find remote ref" in text or "not our ref" in text or "unadvertised object" in text:
        raise SourceError("source-no-such-ref", f"{shown} has no branch, tag or commit {ref!r}.")
    if "No space left" in text:
        raise SourceError("disk-full", f"No room is left on this node for {shown}.")
    last = text.splitlines()[-1] if text else f"git ended with {process.returncode}"
    raise SourceError("source-unreachable", f"Git could not get {shown}: {last}")
