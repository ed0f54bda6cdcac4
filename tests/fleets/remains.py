"""What a fleet has kept that nothing needs: chunks and manifests of its store, and processes."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path

from agents.checkpoints import Manifest, Store, collect, open_store
from agents.checkpoints.blobs import chunk_key
from agents.checkpoints.collection import SILENCE_S
from agents.checkpoints.errors import DamagedError
from tests.fleets.fleet import HostFleet

NEEDED = """
import json
from django.utils import timezone
from portal.actions.checkpoints import living_manifests
from scheduler.live.housekeeping import forget
forget(timezone.now())
print(json.dumps(sorted(set(living_manifests()))))
"""


def stray_chunks(fleet: HostFleet, store: Store | None = None) -> list[str]:
    """Collect as if an hour had passed, then answer how the store differs from what is needed.

    Nothing may be stored meanwhile: half-written things of killed agents count as dead.
    """
    said = fleet.manage("shell", "--no-imports", "-c", NEEDED)
    needed = set(json.loads(said.splitlines()[-1]))
    store = store or open_store(fleet.home / "store")
    collect(store, needed, now=time.time() + 2 * SILENCE_S, grace_s=0)
    store.blobs.forget()
    there = {blob.key.removeprefix("m/") for blob in store.blobs.find("m/")}
    manifests = {key: found for key in needed if (found := _load(store, key)) is not None}
    named = {chunk_key(e.digest) for found in manifests.values() for e in found.extents()}
    chunks = {blob.key for blob in store.blobs.find("c/")}
    rest = [blob.key for top in ("i/", "g/") for blob in store.blobs.find(top)]
    rest = [key for key in rest if not key.startswith("g/done-")]
    rest += [str(path.relative_to(fleet.home)) for path in (fleet.home / "store").rglob(".*")]
    return [
        *(f"manifest {key} is needed by nothing" for key in sorted(there - needed)),
        *(f"manifest {key} is missing" for key in sorted(needed - manifests.keys())),
        *(f"chunk {key} is needed by nothing" for key in sorted(chunks - named)),
        *(f"chunk {key} is missing" for key in sorted(named - chunks)),
        *(f"{key} was left by a store that is over" for key in rest),
    ]


def _load(store: Store, key: str) -> Manifest | None:
    with contextlib.suppress(DamagedError):
        return store.load(key)
    return None


def stray_processes(home: Path) -> list[str]:
    """Answer the processes that name a fleet's home, after it was stopped."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if str(home) in words:
                found.append(f"process {folder.name}: {words[:120]}")
    return found
