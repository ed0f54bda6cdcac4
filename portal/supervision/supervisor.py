"""Keep the parts alive: start them, restart what dies, stop all of it in order."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path

from portal.supervision.child import Child
from portal.supervision.logs import rotate
from portal.supervision.parts import Part

LOOK_S = 0.1
ROTATE_S = 30.0


class Supervisor:
    """The children of one home. Not thread-safe: one thread starts, watches and stops them."""

    def __init__(self, folder: Path, logs: Path, say: Callable[[str], None]) -> None:
        self.folder = folder
        self.logs = logs
        self.say = say
        self.children: dict[str, Child] = {}
        self.stopping = False
        self._rotated_at = time.monotonic()

    def start(self, part: Part) -> None:
        child = Child(part, self.folder, self.logs)
        self.children[part.name] = child
        child.start()
        self._note()

    def look(self) -> None:
        """Notice what died, start what is due, cut what grew."""
        for name, child in self.children.items():
            status = child.died()
            if status is not None:
                self.say(f"{name} ended with status {status}; starting it again")
            if child.due:
                child.start()
                self._note()
        if time.monotonic() - self._rotated_at > ROTATE_S:
            self._rotated_at = time.monotonic()
            rotate(self.logs)

    def watch(self) -> None:
        """Look until told to stop."""
        while not self.stopping:
            self.look()
            time.sleep(LOOK_S)

    def stop(self) -> None:
        """Stop all parts, those that others stand on last; what does not go is killed."""
        ordered = sorted(self.children.values(), key=lambda child: child.part.stops)
        for _, together in itertools.groupby(ordered, key=lambda child: child.part.stops):
            self._stop_together(list(together))
        self.children.clear()

    def _note(self) -> None:
        """Write down which process is which part, for people and for tests that end one."""
        running = {name: child.pid for name, child in self.children.items() if child.pid}
        (self.logs / "parts.json").write_text(json.dumps(running))

    def _stop_together(self, children: list[Child]) -> None:
        for child in children:
            child.ask_to_stop()
        began = time.monotonic()
        for child in children:
            if not child.wait_stopped(began + child.part.grace_s):
                self.say(f"{child.part.name} did not stop within its time and was killed")
