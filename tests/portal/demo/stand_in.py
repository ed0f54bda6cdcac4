"""A portal made of a few dictionaries, that changes as the test says while it is looked at."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

import httpx

from portal.demo.fleet import Fleet

Change = Callable[[], Any]


class StandIn:
    """Answers what the story asks. ``changes`` are made one by one, each before an answer."""

    def __init__(self) -> None:
        self.nodes = [node("node-a"), node("node-b")]
        self.jobs: dict[int, dict[str, Any]] = {}
        self.receipts: dict[int, list[dict[str, Any]]] = {}
        self.output: dict[int, str] = {}
        self.asked: list[str] = []
        """Paths of what was asked to be done."""
        self.refusal = ""
        """Why a move is refused."""
        self.away = False
        self.changes: Iterator[Change] = iter(())
        self.said: list[str] = []

    def fleet(self) -> Fleet:
        """One user's view."""
        return Fleet(
            "http://portal",
            "token",
            "vision",
            say=self.said.append,
            transport=httpx.MockTransport(self.answer),
        )

    def soon(self, *changes: Change) -> None:
        """Make these changes, one at each look from now on."""
        self.changes = itertools.chain(self.changes, changes)

    def add(self, id: int, **told: Any) -> int:
        """Add a job as the API shows it."""
        job = {"id": id, "name": "sleeper", "owner": "ana", "state": "running", "move_asked": False}
        self.jobs[id] = {**job, "detail": "", "sentence": "", **told}
        return id

    def answer(self, request: httpx.Request) -> httpx.Response:
        next(self.changes, lambda: None)()
        if self.away:
            raise httpx.ConnectError("nobody listens")
        path = request.url.path.removeprefix("/api/v1/")
        if request.method == "POST":
            return self._do(path)
        if path == "nodes/":
            return _page(self.nodes)
        if path == "jobs/":
            ended = ("succeeded", "failed", "cancelled")
            return _page([job for job in self.jobs.values() if job["state"] not in ended])
        id = int(path.split("/")[1])
        if path.endswith("/receipts/"):
            return _page(self.receipts.get(id, []))
        if "/output/" in path:
            return httpx.Response(200, text=self.output.get(id, ""))
        return httpx.Response(200, json=self.jobs[id])

    def _do(self, path: str) -> httpx.Response:
        self.asked.append(path)
        if path == "jobs/":
            return httpx.Response(201, json={"id": self.add(len(self.jobs) + 1)})
        found = re.fullmatch(r"jobs/(\d+)/(\w+)/", path)
        assert found
        id, act = int(found[1]), found[2]
        if act == "cancel":
            self.jobs[id]["state"] = "cancelled"
        elif self.refusal:
            return httpx.Response(409, json={"detail": self.refusal})
        else:
            self.jobs[id]["move_asked"] = True
        return httpx.Response(200, json=self.jobs[id])


def node(name: str, **told: Any) -> dict[str, Any]:
    """A node with two idle devices."""
    devices = [{"sick": "", "taken": False} for _ in range(2)]
    abilities = {"migrate": {"able": True, "reason": ""}}
    return {"name": name, "state": "ready", "abilities": abilities, "devices": devices, **told}


def receipt(kind: str, *, done: bool = True, called_off: str = "") -> dict[str, Any]:
    """A receipt, of an interruption that is over unless told otherwise."""
    over = "2026-01-01T00:00:00Z" if done else None
    return {"id": 1, "kind": kind, "resumed_at": over, "called_off": called_off}


def _page(rows: list[dict[str, Any]]) -> httpx.Response:
    return httpx.Response(200, json={"results": rows, "next": None})
