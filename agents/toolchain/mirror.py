"""Downloads Debian packages into a private folder; the system's own apt state is never touched."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

OS_RELEASE = Path("/etc/os-release")
KEYRINGS = Path("/usr/share/keyrings")


class UnableError(Exception):
    """It cannot be done on this machine; ``str()`` is the reason."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where this machine takes its own packages from."""

    site: str
    codename: str


def own_source() -> Source:
    """The mirror and suite of the machine's own sources. Raises UnableError when apt has none."""
    codename = _os_release().get("VERSION_CODENAME", "")
    listing = "$(REPO_URI)|$(RELEASE)|$(COMPONENT)"
    for line in sorted(set(run(["apt-get", "indextargets", "--format", listing]).splitlines())):
        site, release, component = line.split("|")
        if release == codename and component == "main":
            return Source(site.rstrip("/"), codename)
    raise UnableError(f"apt knows no source for the suite {codename or 'of this system'!r}")


def download(names: list[str], *, source: Source, suite: str, folder: Path, alone: bool) -> None:
    """Put ``names`` and what they depend on into ``folder/packages``.

    ``alone`` resolves as if nothing were installed, so that even the C library comes along.
    """
    packages = folder / "packages"
    (packages / "partial").mkdir(parents=True, exist_ok=True)
    (folder / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    (folder / "status").touch()
    keyring = next(iter(sorted(KEYRINGS.glob("debian-archive-keyring.*"))), None)
    signed = f"[signed-by={keyring}] " if keyring else ""
    (folder / "sources.list").write_text(f"deb {signed}{source.site} {suite} main\n")
    options = [
        f"-oDir::Etc::SourceList={folder / 'sources.list'}",
        "-oDir::Etc::SourceParts=/dev/null",
        "-oDir::Etc::PreferencesParts=/dev/null",
        f"-oDir::State::Lists={folder / 'lists'}",
        f"-oDir::Cache={folder}",
        f"-oDir::Cache::Archives={packages}",
        "-oAPT::Sandbox::User=root",
        "-oAPT::Keep-Downloaded-Packages=true",
        "-oAcquire::Languages=none",
        "-oAcquire::Retries=3",
    ]
    if alone:
        options.append(f"-oDir::State::status={folder / 'status'}")
    run(["apt-get", *options, "-qq", "update"])
    install = ["install", "--no-install-recommends", "--reinstall", "--download-only", "-qq", "-y"]
    run(["apt-get", *options, *install, *names])


def unpack(folder: Path, into: Path) -> None:
    """Unpack every package in ``folder/packages`` below ``into``; nothing is configured."""
    into.mkdir(parents=True, exist_ok=True)
    for package in sorted((folder / "packages").glob("*.deb")):
        run(["dpkg-deb", "-x", str(package), str(into)])


def run(command: list[str]) -> str:
    """Run it and return what it printed. Raises UnableError with its last lines when it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    except FileNotFoundError:
        raise UnableError(f"{command[0]} is not on this machine") from None
    except subprocess.TimeoutExpired:
        raise UnableError(f"{command[0]} did not finish within ten minutes") from None
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise UnableError(f"{command[0]} failed: {' / '.join(lines[-3:])}")
    return done.stdout


def _os_release() -> dict[str, str]:
    try:
        lines = OS_RELEASE.read_text().splitlines()
    except FileNotFoundError:
        return {}
    pairs = (line.partition("=") for line in lines if "=" in line)
    return {key: value.strip('"') for key, _, value in pairs}
