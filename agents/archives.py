"""Unpack a user's source into a workspace, so that nothing in it can reach beyond the workspace.

An archive is unpacked into a hidden folder first and its names are moved into the workspace only
when all of it was found safe; a refused archive leaves the workspace as it was.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

MAX_FILES = 100_000
MAX_BYTES = 20 * 1024**3

_TAR = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
_BLOCK = 1024 * 1024


class ArchiveError(Exception):
    """An archive was refused. ``id`` is stable, ``str()`` says what to do about it."""

    def __init__(self, id: str, sentence: str) -> None:
        super().__init__(sentence)
        self.id = id


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpacked:
    """What came out of an archive."""

    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class _Member:
    """One name in an archive, whatever its kind."""

    name: str
    kind: str
    """``folder``, ``file``, ``link``, ``same`` or what else it is, to be refused."""
    mode: int
    target: str
    open: Callable[[], IO[bytes] | None]


def unpack(
    archive: Path,
    workspace: Path,
    filename: str,
    *,
    max_files: int = MAX_FILES,
    max_bytes: int = MAX_BYTES,
) -> Unpacked:
    """Unpack a tar or zip archive, known by ``filename``'s ending; any other file is copied as it
    is.

    Raises ``ArchiveError`` with ``archive-damaged``, ``archive-escapes``, ``archive-device`` or
    ``archive-too-large``. ``OSError`` where the disk fails.
    """
    workspace.mkdir(parents=True, exist_ok=True)
    half = workspace / f".unpacking-{secrets.token_hex(4)}"
    half.mkdir(mode=0o700)
    try:
        unpacking = _Unpacking(half, max_files, max_bytes)
        lower = filename.lower()
        if lower.endswith(_TAR):
            _each(unpacking, _tar_members(archive))
        elif lower.endswith(".zip"):
            _each(unpacking, _zip_members(archive))
        else:
            _each(unpacking, _plain(archive, filename))
        unpacking.check_links()
        _merge(half, workspace)
        return Unpacked(files=unpacking.files, bytes=unpacking.bytes)
    finally:
        shutil.rmtree(half, ignore_errors=True)


class _Unpacking:
    """One archive being unpacked below a folder that nobody else writes to."""

    def __init__(self, root: Path, max_files: int, max_bytes: int) -> None:
        self.root = root
        self.files = 0
        self.bytes = 0
        self._max_files = max_files
        self._max_bytes = max_bytes
        self._links: list[Path] = []

    def add(self, member: _Member) -> None:
        self.files += 1
        if self.files > self._max_files:
            raise ArchiveError(
                "archive-too-large",
                f"The archive has more than {self._max_files} files; leave some out.",
            )
        path = self._place(member.name)
        if path == self.root:
            return
        if member.kind == "folder":
            if not path.is_dir():
                self._free(path, member.name)
                path.mkdir()
            return
        self._free(path, member.name)
        if member.kind == "file":
            self._write(path, member)
        elif member.kind == "link":
            if member.target.startswith("/"):
                raise _escapes(member.name)
            path.symlink_to(member.target)
            self._links.append(path)
        elif member.kind == "same":
            self._link(path, member)
        else:
            raise ArchiveError(
                "archive-device", f"{member.name!r} is a device, a pipe or a socket; leave it out."
            )

    def check_links(self) -> None:
        """Refuse links that lead out, now that all that they may lead through is there."""
        root = os.path.realpath(self.root)
        for link in self._links:
            real = os.path.realpath(link)
            if real != root and not real.startswith(root + "/"):
                raise _escapes(str(link.relative_to(self.root)))

    def _place(self, name: str) -> Path:
        """Return where a name belongs, its folders made. No folder on the way may be a link."""
        pure = PurePosixPath(name)
        if pure.is_absolute() or ".." in pure.parts or "\0" in name or "\\" in name:
            raise _escapes(name)
        path = self.root
        for part in pure.parts[:-1]:
            path = path / part
            if path.is_symlink():
                raise _escapes(name)
            if not path.is_dir():
                self._free(path, name)
                path.mkdir()
        return path / pure.name if pure.parts else path

    def _free(self, path: Path, name: str) -> None:
        """A later file replaces an earlier one of the same name; a folder is not replaced."""
        if path.is_symlink() or path.is_file():
            path.unlink()
        elif path.exists():
            raise ArchiveError("archive-damaged", f"{name!r} is both a folder and a file.")

    def _write(self, path: Path, member: _Member) -> None:
        source = member.open()
        if source is None:
            raise ArchiveError("archive-damaged", f"{member.name!r} has no content.")
        with source, path.open("xb") as file:
            while block := source.read(_BLOCK):
                self.bytes += len(block)
                if self.bytes > self._max_bytes:
                    raise ArchiveError(
                        "archive-too-large",
                        f"The archive unpacks to more than {self._max_bytes:,} bytes; put large "
                        "data where the job can read it and upload the code alone.",
                    )
                file.write(block)
        path.chmod(0o755 if member.mode & 0o111 else 0o644)

    def _link(self, path: Path, member: _Member) -> None:
        target = self._place(member.target)
        if target.is_symlink() or not target.is_file():
            raise _escapes(member.name)
        os.link(target, path)


def _each(unpacking: _Unpacking, members: Iterator[_Member]) -> None:
    try:
        for member in members:
            unpacking.add(member)
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, ValueError) as error:
        raise _damaged(error) from error
    except (NotImplementedError, RuntimeError) as error:
        raise ArchiveError(
            "archive-damaged", f"The archive is encrypted or packed in an unknown way: {error}."
        ) from error
    except OSError as error:
        # lzma and gzip report a broken stream as an OSError without a number.
        if error.errno is None:
            raise _damaged(error) from error
        raise


def _tar_members(archive: Path) -> Iterator[_Member]:
    kinds = {
        tarfile.REGTYPE: "file",
        tarfile.AREGTYPE: "file",
        tarfile.CONTTYPE: "file",
        tarfile.GNUTYPE_SPARSE: "file",
        tarfile.DIRTYPE: "folder",
        tarfile.SYMTYPE: "link",
        tarfile.LNKTYPE: "same",
    }
    with tarfile.open(archive, "r:*") as tar:
        for info in tar:
            kind = kinds.get(info.type, "device")
            yield _Member(info.name, kind, info.mode, info.linkname, partial(tar.extractfile, info))


def _zip_members(archive: Path) -> Iterator[_Member]:
    with zipfile.ZipFile(archive) as zipped:
        for info in zipped.infolist():
            mode = info.external_attr >> 16
            kind, target = "file", ""
            if info.is_dir():
                kind = "folder"
            elif stat.S_ISLNK(mode):
                kind, target = "link", zipped.read(info)[:4096].decode("utf-8", "surrogateescape")
            elif stat.S_IFMT(mode) not in (0, stat.S_IFREG):
                kind = "device"
            yield _Member(info.filename, kind, mode, target, partial(zipped.open, info))


def _plain(path: Path, filename: str) -> Iterator[_Member]:
    name = PurePosixPath(filename.replace("\\", "/")).name or "upload"
    yield _Member(name, "file", 0o644, "", lambda: path.open("rb"))


def _merge(source: Path, target: Path) -> None:
    """Move all that lies in one folder into another; files of the same name are replaced."""
    for item in source.iterdir():
        place = target / item.name
        if item.is_dir() and not item.is_symlink() and place.is_dir() and not place.is_symlink():
            _merge(item, place)
            continue
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        elif place.is_symlink() or place.exists():
            place.unlink()
        item.rename(place)


def _escapes(name: str) -> ArchiveError:
    return ArchiveError(
        "archive-escapes",
        f"{name!r} leads out of the workspace; pack with relative paths and without such links.",
    )


def _damaged(error: Exception) -> ArchiveError:
    return ArchiveError(
        "archive-damaged", f"The archive cannot be read ({error}); pack and upload it again."
    )
