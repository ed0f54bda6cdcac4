"""Pack a folder for a job, leaving out what its ignore files name.

Patterns are those of ``.gitignore``, read from ``.gitignore`` and then ``.tidepoolignore`` at the
folder's top only: a pattern without an inner slash holds at any depth, ``!`` takes one back.
"""

from __future__ import annotations

import os
import re
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import click

ALWAYS = (".git/", ".hg/", ".venv/", "__pycache__/", ".tidepool/", ".DS_Store")
IGNORE_FILES = (".gitignore", ".tidepoolignore")
IN_MEMORY = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Pattern:
    """One line of an ignore file."""

    matches: re.Pattern[str]
    folders_only: bool
    takes_back: bool


def pack(folder: Path) -> tuple[IO[bytes], int]:
    """Answer a tar.gz of a folder, at its beginning, and how many files are in it."""
    if not folder.is_dir():
        raise click.UsageError(f"--dir {folder}: there is no such folder.")
    packed: IO[bytes] = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115
    count = 0
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=5) as archive:
        for path, name in chosen(folder):
            archive.add(path, name, recursive=False, filter=anonymous)
            count += not path.is_dir() or path.is_symlink()
    packed.seek(0)
    return packed, count


def chosen(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield each file, folder and link to pack with its name, folders first, in order."""
    patterns = read_patterns(folder)
    waiting = [""]
    while waiting:
        inside = waiting.pop()
        with os.scandir(folder / inside) as found:
            entries = sorted(found, key=lambda entry: entry.name)
        for entry in entries:
            name = f"{inside}/{entry.name}" if inside else entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if ignored(patterns, name, is_folder=is_folder):
                continue
            if entry.is_symlink() and leaves(folder, Path(entry.path)):
                click.echo(f"Left out: {name} points out of the folder.", err=True)
                continue
            if not (is_folder or entry.is_symlink() or entry.is_file(follow_symlinks=False)):
                continue
            yield Path(entry.path), name
            if is_folder:
                waiting.append(name)


def leaves(folder: Path, link: Path) -> bool:
    """Whether a link points out of the folder: where it would be unpacked nothing is there."""
    target = link.readlink()
    if target.is_absolute():
        return True
    top = os.path.normpath(folder)
    return not os.path.normpath(link.parent / target).startswith((top + os.sep, top))


def anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo:
    """Leave out who owns a file here: it means nothing where it is unpacked."""
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


def read_patterns(folder: Path) -> list[Pattern]:
    lines = list(ALWAYS)
    for name in IGNORE_FILES:
        path = folder / name
        if path.is_file():
            lines += path.read_text(errors="replace").splitlines()
    return [pattern for pattern in map(read_pattern, lines) if pattern]


def read_pattern(line: str) -> Pattern | None:
    """Read one line; None for a comment or nothing."""
    text = line.rstrip()
    if not text or text.startswith("#"):
        return None
    takes_back = text.startswith("!")
    text = text.removeprefix("!")
    folders_only = text.endswith("/")
    text = text.rstrip("/")
    anchored = "/" in text
    expression = ("" if anchored else "(?:.*/)?") + translate(text.lstrip("/"))
    return Pattern(re.compile(expression), folders_only, takes_back)


def translate(glob: str) -> str:
    """Turn a glob into an expression for whole names; ``**`` crosses folders, ``*`` does not."""
    parts = re.split(r"(/\*\*/|\*\*/|/\*\*|\*|\?|\[[^]]+])", glob)
    known = {"/**/": "/(?:.*/)?", "**/": "(?:.*/)?", "/**": "/.*", "*": "[^/]*", "?": "[^/]"}
    return "".join(
        known.get(part) or (part.replace("[!", "[^") if part[:1] == "[" else re.escape(part))
        for part in parts
    )


def ignored(patterns: list[Pattern], name: str, *, is_folder: bool) -> bool:
    """Whether the last pattern that matches leaves the name out."""
    answer = False
    for pattern in patterns:
        if (is_folder or not pattern.folders_only) and pattern.matches.fullmatch(name):
            answer = not pattern.takes_back
    return answer
