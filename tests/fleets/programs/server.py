"""A parameter server and its workers: open TCP connections, and a state that nobody can guess.

Rank 0 serves, every rank works. A step's state follows from the one before and from every rank's
part in it; each rank prints it, and appends the time to the file ``ticks`` in its workspace.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import socket
import time

START = b"tidepool".ljust(32, b".")
PORT = 29400


def part(state: bytes, rank: int, step: int) -> bytes:
    """What a rank adds to a step."""
    return hashlib.sha256(b"%s %d %d" % (state, rank, step)).digest()


def merge(parts: list[bytes]) -> bytes:
    """The state that follows, from all ranks' parts in order."""
    return hashlib.sha256(b"".join(parts)).digest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1 << 30)
    parser.add_argument("--pace", type=float, default=0.02)
    told = parser.parse_args()
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    workers = accept(world) if rank == 0 else {}
    server = connect(rank) if rank else None
    state = START
    with open("ticks", "a", buffering=1) as ticks:  # noqa: PTH123
        for step in range(1, told.steps + 1):
            own = part(state, rank, step)
            if server is None:
                state = merge([own, *(receive(workers[each]) for each in range(1, world))])
                for worker in workers.values():
                    worker.sendall(state)
            else:
                server.sendall(own)
                state = receive(server)
            now = time.time()
            ticks.write(f"{now:.6f}\n")
            print(f"step {step} state {state.hex()[:16]} at {now:.3f}", flush=True)
            time.sleep(told.pace)
    if server is not None:
        server.recv(1)  # until rank 0 has ended too
    print(f"weights sha256 {state.hex()}", flush=True)


def accept(world: int) -> dict[int, socket.socket]:
    listener = socket.create_server(("", PORT))
    workers = {}
    while len(workers) < world - 1:
        worker, _ = listener.accept()
        worker.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        workers[worker.recv(1)[0]] = worker
    return workers


def connect(rank: int) -> socket.socket:
    while True:
        try:
            server = socket.create_connection((os.environ["MASTER_ADDR"], PORT))
        except OSError:
            time.sleep(0.05)
            continue
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        server.sendall(bytes([rank]))
        return server


def receive(peer: socket.socket) -> bytes:
    """Answer the next 32 bytes. Raises ``ConnectionError`` when the peer is gone."""
    got = b""
    while len(got) < 32:
        more = peer.recv(32 - len(got))
        if not more:
            raise ConnectionError("the peer is gone")
        got += more
    return got


if __name__ == "__main__":
    main()
