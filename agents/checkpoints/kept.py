"""Images that stay on a node: what it has dumped or fetched lately, so as not to fetch it again.

They lie below ``kept/<owner>/<manifest key>`` where the owner is a replica of a job, the newest two
of each, as many bytes in all as the limit allows. They are a convenience: whatever is wrong with
one, or with the disk, it is dropped and the chunk store is asked. An image is trusted for as long
as its files' inodes, sizes and times are what they were when its bytes had just been checked, and
the machine was not started anew since.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec

from agents.checkpoints.leaning import PARENT_LINK, Base
from agents.checkpoints.manifest import Manifest

NEWEST = 2
"""Images kept of one replica: the last cut may yet be called off."""
IDLE_S = 600.0
"""Seconds after which what belongs to no replica of this node goes."""
SPARE = 0.1
"""Share of the disk that is never filled with kept images."""

Stamp = tuple[int, int, int, int]
"""A file's inode, size and times: equal means unaltered."""

log = logging.getLogger("tidepool.kept")


class _Seal(msgspec.Struct, kw_only=True):
    """What tells that an image is still the one whose bytes were checked."""

    boot: str
    files: dict[str, Stamp]
    manifest: Manifest


class Kept:
    """The kept images of one node. Every verb may be called from many threads; none raises."""

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder = folder
        self._limit = limit
        self._held: Counter[str] = Counter()
        self._read: dict[Path, tuple[Stamp, _Seal, Base]] = {}
        """Seals that were read already."""
        self._lock = threading.Lock()

    def keep(self, owner: str, key: str, manifest: Manifest, images: Path) -> None:
        """Take over a folder of images, whose bytes are those of the manifest, or remove it."""
        place = self._folder / owner / key
        with self.hold(owner):
            self._take(place, manifest, images)

    def find(self, owner: str, key: str) -> Base | None:
        """The image of that manifest, if it is here unaltered."""
        place = self._folder / owner / key
        try:
            seal, base = self._open(place)
            if (seal.boot, seal.files) == (_boot(), _signature(base.images)):
                return base
            log.warning("%s: a kept image was altered on disk; it is not used", owner)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as error:
            log.warning("%s: a kept image cannot be read: %s", owner, error)
        self._drop(place)
        return None

    def newest(self, owner: str) -> Base | None:
        """The newest image of that replica that is here unaltered."""
        for place in self._places(owner):
            if (found := self.find(owner, place.name)) is not None:
                return found
        return None

    def stands(self, base: Base) -> bool:
        """Whether an image that was found is still here unaltered."""
        place = base.images.parent
        return self.find(place.parent.name, place.name) is not None

    def distrust(self, owner: str) -> None:
        """Use no image of a replica any more: one of them could not be restored from."""
        for place in self._places(owner):
            with contextlib.suppress(OSError):
                (place / "seal").unlink()

    @contextlib.contextmanager
    def hold(self, owner: str) -> Iterator[None]:
        """Keep ``tidy`` from a replica's images while they are in use."""
        with self._lock:
            self._held[owner] += 1
        try:
            yield
        finally:
            with self._lock:
                self._held[owner] -= 1

    def tidy(self, wanted: Collection[str]) -> None:
        """Remove what is too old, too much, or of no replica in ``wanted`` for some time."""
        with contextlib.suppress(OSError):
            owners = sorted(path.name for path in self._folder.iterdir())
            left: list[tuple[float, int, Path]] = []
            for owner in owners:
                if owner.startswith("."):
                    shutil.rmtree(self._folder / owner, ignore_errors=True)
                    continue
                places = self._places(owner)
                for place in places[:NEWEST]:
                    used = _used(place)
                    if owner not in wanted and time.time() - used > IDLE_S:
                        self._drop(place)
                    else:
                        left.append((used, _size(place), place))
                for place in places[NEWEST:]:
                    self._drop(place)
            total = sum(size for _, size, _ in left)
            for _, size, place in sorted(left):
                if total <= self._limit and self._has_room(0):
                    break
                self._drop(place)
                total -= size

    def _take(self, place: Path, manifest: Manifest, images: Path) -> None:
        owner = place.parent.name
        try:
            if (images / PARENT_LINK).is_symlink() or not self._has_room(manifest.bytes_raw):
                return
            self._folder.mkdir(parents=True, exist_ok=True)
            self._folder.chmod(0o700)
            if self.find(owner, place.name) is not None:
                return
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
            images.rename(place / "images")
            seal = _Seal(boot=_boot(), files=_signature(place / "images"), manifest=manifest)
            (place / "seal").write_bytes(msgspec.msgpack.encode(seal))
        except OSError as error:
            log.warning("%s: its image is not kept: %s", owner, error)
            shutil.rmtree(place, ignore_errors=True)
        finally:
            shutil.rmtree(images, ignore_errors=True)

    def _open(self, place: Path) -> tuple[_Seal, Base]:
        """Read a seal, or remember it: with all its chunks that takes a while."""
        file = place / "seal"
        stamp = _stamp(file)
        known = self._read.get(place)
        if known is None or known[0] != stamp:
            seal = msgspec.msgpack.decode(file.read_bytes(), type=_Seal)
            base = Base(images=place / "images", manifest=seal.manifest)
            known = self._read[place] = (stamp, seal, base)
        return known[1], known[2]

    def _has_room(self, size: int) -> bool:
        place = self._folder if self._folder.exists() else self._folder.parent
        disk = shutil.disk_usage(place)
        return size <= self._limit and disk.free > SPARE * disk.total

    def _places(self, owner: str) -> list[Path]:
        """The folders of a replica's images, newest first."""
        try:
            return sorted((self._folder / owner).iterdir(), key=_used, reverse=True)
        except OSError:
            return []

    def _drop(self, place: Path) -> None:
        owner = place.parent.name
        with self._lock:
            if self._held[owner]:
                return
            self._read.pop(place, None)
            # Out of sight at once: removing it takes a while.
            gone = self._folder / f".{owner}-{place.name}"
            with contextlib.suppress(OSError):
                place.rename(gone)
            with contextlib.suppress(OSError):
                place.parent.rmdir()
        shutil.rmtree(gone, ignore_errors=True)


def _used(place: Path) -> float:
    """When it was kept; 0 for what a crash has left half-made."""
    try:
        return (place / "seal").stat().st_mtime
    except OSError:
        return 0.0


def _size(place: Path) -> int:
    return sum(path.stat().st_size for path in (place / "images").rglob("*") if path.is_file())


def _signature(images: Path) -> dict[str, Stamp]:
    return {path.name: _stamp(path) for path in sorted(images.iterdir())}


def _stamp(path: Path) -> Stamp:
    stat = path.lstat()
    return stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
