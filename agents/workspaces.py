"""Replicas' folders on the node, and the sources that fill their workspaces."""

from __future__ import annotations

import hashlib
import http.client
import os
import shutil
import tempfile
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agents.archives import ArchiveError, unpack
from agents.drivers.base import DriverError
from agents.protocol import Source
from agents.sources import SourceError, clone

BLOCK = 1 << 20
TIMEOUT_S = 60.0
SERVERS_FAULT = 500


class Workspaces:
    """One folder a replica in ``state/replicas``; uploads in ``state/uploads``, oldest go first."""

    def __init__(self, state: Path, *, portal: str, token: str, cache_bytes: int = 2 << 30) -> None:
        self.replicas = state / "replicas"
        self.uploads = state / "uploads"
        self.portal = portal
        self.cache_bytes = cache_bytes
        self._token = token
        self._lock = threading.Lock()
        self._fetching: dict[str, threading.Lock] = {}
        self.replicas.mkdir(parents=True, exist_ok=True)
        self.uploads.mkdir(parents=True, exist_ok=True)

    def folder(self, key: str) -> Path:
        """The replica's folder."""
        return self.replicas / key

    def output(self, key: str) -> Path:
        """The file that its output goes to."""
        return self.replicas / key / "output"

    def keys(self) -> list[str]:
        """Keys of the folders that exist."""
        return sorted(path.name for path in self.replicas.iterdir() if path.is_dir())

    def prepare(self, key: str, source: Source) -> Path:
        """Make the workspace anew and fill it; blocking. Raises ``DriverError``."""
        workspace = self.folder(key) / "workspace"
        if workspace.exists():
            shutil.rmtree(workspace)
        workspace.mkdir(parents=True)
        if source.upload:
            self._fill(workspace, source)
        elif source.git:
            try:
                clone(source.git, source.ref, workspace)
            except SourceError as error:
                raise DriverError(error.id, str(error)) from error
        return workspace

    def _fill(self, workspace: Path, source: Source) -> None:
        with self._upload(source) as file:
            name = Path(source.filename or source.upload.rstrip("/")).name or "upload"
            try:
                unpack(file, workspace, name)
            except ArchiveError as error:
                raise DriverError(error.id, str(error)) from error

    @contextmanager
    def _upload(self, source: Source) -> Iterator[Path]:
        """The upload's file, fetched once however many replicas need it."""
        name = source.sha256 or hashlib.sha256(source.upload.encode()).hexdigest()
        with self._lock:
            fetching = self._fetching.setdefault(name, threading.Lock())
        with fetching:
            path = self.uploads / name
            if path.exists() and source.sha256:
                os.utime(path)
            else:
                self._make_room()
                self._fetch(source, path)
            yield path

    def _fetch(self, source: Source, path: Path) -> None:
        request = urllib.request.Request(
            self.portal + "/" + source.upload.lstrip("/"),
            headers={"Authorization": f"Bearer {self._token}"},
        )
        digest = hashlib.sha256()
        with tempfile.NamedTemporaryFile(dir=self.uploads, suffix=".part", delete=False) as part:
            try:
                with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
                    while block := answer.read(BLOCK):
                        digest.update(block)
                        part.write(block)
                part.close()
                if source.sha256 and digest.hexdigest() != source.sha256.lower():
                    raise DriverError(
                        "source-damaged", "The upload's checksum is wrong; upload the files again."
                    )
                Path(part.name).replace(path)
            except urllib.error.HTTPError as error:
                id = "portal-unreachable" if error.code >= SERVERS_FAULT else "source-refused"
                told = f"The portal refused the upload to this node: {error.code}."
                raise DriverError(id, told) from error
            except (urllib.error.URLError, http.client.HTTPException, TimeoutError) as error:
                told = f"The portal could not be reached for the upload: {error}."
                raise DriverError("portal-unreachable", told) from error
            finally:
                Path(part.name).unlink(missing_ok=True)

    def _make_room(self) -> None:
        with self._lock:
            files = [(path.stat(), path) for path in self.uploads.glob("[0-9a-f]*")]
            total = sum(stat.st_size for stat, _ in files)
            for stat, path in sorted(files, key=lambda item: item[0].st_mtime):
                if total <= self.cache_bytes:
                    break
                path.unlink(missing_ok=True)
                total -= stat.st_size

    def remove(self, key: str) -> None:
        """Remove the replica's folder."""
        folder = self.folder(key)
        shutil.rmtree(folder, ignore_errors=True)
        if folder.exists():
            shutil.rmtree(folder)
