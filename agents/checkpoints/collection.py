"""Delete manifests that nothing needs, and chunks that no manifest names, while stores go on.

A collection never deletes a chunk that a store in progress relies on, however old the chunk is and
however the two interleave. For each round of chunks that no kept manifest names:

1. *condemn*: write the round's chunks to ``g/<round>``;
2. read the claims of all stores in progress (``i/``) and spare what they claim;
3. list the manifests again and spare what the new ones name;
4. delete the rest;
5. write a new marker ``g/done-…``, then remove ``g/<round>``.

A store claims a batch, *then* looks at ``g/`` (``session.py``). If its claim came before step 2, it
is seen there, or its manifest is in step 3, for a store drops its claims only after its manifest is
written. If it came after, step 1 is past: the store sees the round, waits until it is over, and
looks anew which of its chunks are there. The marker tells nodes that remember what is there to
forget it.

Clocks decide only what has no such proof: a manifest that is not (yet) named as live is kept for
``grace_s``; the claims of a store that has not written anything for an hour are taken away, and it
then cannot commit; a round that is two minutes old was left by a collection that died. The nodes'
clocks must agree to a minute.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from agents.checkpoints.blobs import chunk_key
from agents.checkpoints.errors import DamagedError, StoreUnreachableError
from agents.checkpoints.store import Store

SILENCE_S = 3600.0
"""A store in progress that has written no claim for so long is taken for dead."""
ROUND_S = 120.0
"""A round that has not begun to delete after a quarter of this gives up; an older one died."""
ROUND = 4096
"""Chunks condemned at a time."""
_DIGEST = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What a collection deleted: chunks, their stored bytes, and manifests."""

    chunks: int
    bytes: int
    manifests: int


def collect(store: Store, live: Iterable[str], now: float, grace_s: float) -> Collected:
    """Delete manifests not in ``live`` and older than ``grace_s``, and all chunks that none names
    then.

    ``now`` is wall-clock seconds. Safe beside any number of stores and fetches of live manifests,
    and beside another collection. Raises ``StoreUnreachableError``; it can then be called again.
    """
    store.blobs.forget()
    _bury_the_dead(store, now)
    store.blobs.tidy(now - SILENCE_S)
    keep = set(live)
    manifests = store.blobs.find("m/")
    dead = {
        blob.key for blob in manifests if blob.key[2:] not in keep and blob.modified < now - grace_s
    }
    store.blobs.delete(dead)
    kept = {blob.key for blob in manifests} - dead
    named = _named(store, kept)
    chunks = freed = 0
    for candidates in _rounds(store, named):
        gone = _delete_unclaimed(store, set(candidates), kept)
        chunks += len(gone)
        freed += sum(candidates[digest] for digest in gone)
    return Collected(chunks=chunks, bytes=freed, manifests=len(dead))


def discard(store: Store, digests: set[bytes], since: float) -> None:
    """Delete chunks that a failed store wrote after ``since``, unless others have come to rely on
    them.
    """
    older = {blob.key for blob in store.blobs.find("m/") if blob.modified < since - SILENCE_S}
    everything = sorted(digests)
    for at in range(0, len(everything), ROUND):
        _delete_unclaimed(store, set(everything[at : at + ROUND]), older)


def condemned(store: Store, now: float) -> tuple[set[bytes], str]:
    """Return the chunks that collections are deleting at this moment, and the marker of the last
    one.
    """
    while True:
        blobs = store.blobs.find("g/")
        rounds = [
            blob.key
            for blob in blobs
            if not blob.key.startswith("g/done-") and blob.modified > now - ROUND_S
        ]
        # A round that died may have deleted some of its chunks: it counts as a marker too.
        markers = {blob.key for blob in blobs} - set(rounds)
        found: set[bytes] = set()
        contents = store.blobs.get(rounds) if rounds else []
        if None in contents:  # a round ended between the two looks
            continue
        for content in contents:
            found |= _digests(content or b"")
        return found, ",".join(sorted(markers))


def _delete_unclaimed(store: Store, candidates: set[bytes], known: set[str]) -> set[bytes]:
    """One round: condemn, spare what claims and manifests beyond the ``known`` ones name, delete
    the rest.
    """
    number = secrets.token_hex(8)
    deadline = time.monotonic() + ROUND_S / 4
    store.blobs.put({f"g/{number}": b"".join(candidates)})
    try:
        claims = [blob.key for blob in store.blobs.find("i/")]
        doomed = candidates.copy()
        for claim in store.blobs.get(claims) if claims else []:
            doomed -= _digests(claim or b"")
        newer = {blob.key for blob in store.blobs.find("m/")} - known
        doomed -= _named(store, newer)
        if time.monotonic() > deadline:
            raise StoreUnreachableError(
                f"The chunk store {store.url} is too slow for a collection; nothing was deleted."
            )
        if doomed:
            store.blobs.delete([chunk_key(digest) for digest in doomed])
            store.announce()
        return doomed
    finally:
        store.blobs.delete([f"g/{number}"])


def _rounds(store: Store, named: set[bytes]) -> Iterator[dict[bytes, int]]:
    """Yield the chunks that no manifest names, some thousand at a time, with their stored sizes."""
    found: dict[bytes, int] = {}
    for blob in store.blobs.find("c/"):
        digest = _digest(blob.key)
        if digest and digest not in named:
            found[digest] = blob.size
            if len(found) == ROUND:
                yield found
                found = {}
    if found:
        yield found


def _named(store: Store, keys: Iterable[str]) -> set[bytes]:
    """Return all chunks that these manifests name. A damaged one names none: it can never be
    restored.
    """
    found: set[bytes] = set()
    for key in keys:
        try:
            manifest = store.load(key.removeprefix("m/"))
        except DamagedError:
            continue
        found.update(extent.digest for extent in manifest.extents())
    return found


def _bury_the_dead(store: Store, now: float) -> None:
    claims: dict[str, list[str]] = {}
    newest: dict[str, float] = {}
    for blob in store.blobs.find("i/"):
        session = blob.key.split("/")[1]
        claims.setdefault(session, []).append(blob.key)
        newest[session] = max(newest.get(session, 0.0), blob.modified)
    for session, keys in claims.items():
        if newest[session] < now - SILENCE_S:
            store.blobs.delete(keys)
    rounds = [blob for blob in store.blobs.find("g/") if not blob.key.startswith("g/done-")]
    store.blobs.delete([blob.key for blob in rounds if blob.modified < now - ROUND_S])


def _digests(content: bytes) -> set[bytes]:
    whole = len(content) - len(content) % _DIGEST
    return {content[at : at + _DIGEST] for at in range(0, whole, _DIGEST)}


def _digest(key: str) -> bytes:
    try:
        return bytes.fromhex(key.rpartition("/")[2])
    except ValueError:
        return b""
