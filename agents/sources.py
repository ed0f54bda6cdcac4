"""Clone a job's git source into its workspace, with nothing asked, no hook run and no local file
read.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from agents.addresses import without_login

SCHEMES = ("https", "http", "ssh")
TIMEOUT_S = 300.0
SILENT_S = 30
"""A server that sends nothing for so long is taken for one that is away."""

SSH = (
    "ssh -oBatchMode=yes -oStrictHostKeyChecking=accept-new"
    f" -oConnectTimeout={SILENT_S} -oServerAliveInterval={SILENT_S // 3}"
)

_AWAY = re.compile(
    r"connection (refused|reset|timed out|closed)|couldn't connect|failed to connect"
    r"|timed out|too slow|network is unreachable|no route to host|empty reply"
    r"|returned error: (429|5\d\d)|early eof|hung up unexpectedly|unexpected disconnect"
    r"|rpc failed|recv failure|send failure|handshake|temporary failure",
    re.IGNORECASE,
)
"""What git says when a server cannot be reached now; it may be another time."""
_FOR_GOOD = re.compile(
    r"permission denied|not found|authentication failed|could not read username"
    r"|returned error: 4(?!29)|verification failed",
    re.IGNORECASE,
)

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
    ``source-unreachable``, ``source-no-such-ref``, ``source-timeout`` or ``git-missing``, or with
    ``repository-unreachable`` where the server may be back soon; the workspace is then empty again.
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
        "http.lowSpeedLimit=1",
        f"http.lowSpeedTime={SILENT_S}",
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
        "GIT_SSH_COMMAND": SSH,
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
    id = "repository-unreachable" if _may_pass(text, url) else "source-unreachable"
    raise SourceError(id, f"Git could not get {shown}: {last}")


def _may_pass(said: str, url: str) -> bool:
    """Whether it is worth trying again: the server is away, and not the address wrong."""
    if _FOR_GOOD.search(said):
        return False
    if "Could not resolve host:" in said:
        return _names_are_away(urlsplit(url).hostname or "")
    return bool(_AWAY.search(said))


def _names_are_away(host: str) -> bool:
    """Whether nobody answers for names now, and not that nobody knows this one."""
    try:
        socket.getaddrinfo(host, None)
    except socket.gaierror as error:
        return error.errno == socket.EAI_AGAIN
    return True
