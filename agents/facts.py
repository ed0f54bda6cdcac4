"""The board of facts: what every replica is, told to the portal whole after each change."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from agents.protocol import Facts, ReplicaFact, State

GAP_S = 0.02
"""Between two messages: what changes meanwhile goes together."""
DULL_S = 0.1
"""How long a fact that nothing follows from may wait for one that matters."""
PEERS_S = 0.5
"""How long a fact may wait for those of the same job's replicas here, where all of them count."""
BEFORE = {
    State.READY: {State.PREPARING},
    State.RUNNING: {State.PREPARING, State.READY},
    State.FROZEN: {State.RUNNING},
    State.ABSENT: {State.PREPARING, State.READY, State.RUNNING, State.FROZEN, State.STORED},
}
"""From where others are on their way to a state: nothing follows from it until they are there. What
is stored is fetched at once."""


class Board:
    """The newest fact of every replica; many changes in a moment become one message."""

    def __init__(self) -> None:
        self.number = 0
        """Number of the desired state that is being obeyed."""
        self.facts: dict[str, ReplicaFact] = {}
        self.prefetched: list[str] = []
        self._changed = asyncio.Event()
        self._told = 0
        """Counts the messages: what waited to be told may have gone with another fact's."""

    def put(self, key: str, fact: ReplicaFact, *, dull: bool = False) -> None:
        """Post a fact; one that is ``dull`` waits a moment for another to go with it."""
        if self.facts.get(key) == fact:
            return
        self.facts[key] = fact
        if dull:
            self._tell_within(DULL_S)
        elif self._peers_come(fact):
            self._tell_within(PEERS_S)
        else:
            self._changed.set()

    def _peers_come(self, fact: ReplicaFact) -> bool:
        before = BEFORE.get(fact.state, set())
        return not fact.error and any(
            (peer.job, peer.epoch) == (fact.job, fact.epoch) and peer.state in before
            for peer in self.facts.values()
        )

    def _tell_within(self, seconds: float) -> None:
        told = self._told

        def tell() -> None:
            if self._told == told:
                self._changed.set()

        asyncio.get_running_loop().call_later(seconds, tell)

    def prefetch(self, manifests: list[str]) -> None:
        """Post which of the hints are done with."""
        if self.prefetched != manifests:
            self.prefetched = manifests
            self._changed.set()

    def renew(self, number: int) -> None:
        """Another desired state arrived: tell everything again under its number, perhaps with what
        it brings about."""
        self.number = number
        self._tell_within(DULL_S)

    async def tell(self, send: Callable[[Facts], Awaitable[None]]) -> None:
        """Send the board now and after each change, until cancelled.

        A replica that was told absent is taken off: from then on its not being listed says so.
        """
        self._changed.set()
        while True:
            await self._changed.wait()
            self._changed.clear()
            self._told += 1
            told = dict(self.facts)
            replicas = list(told.values())
            await send(Facts(number=self.number, replicas=replicas, prefetched=self.prefetched))
            for key, fact in told.items():
                if fact.state is State.ABSENT and self.facts.get(key) == fact:
                    del self.facts[key]
            await asyncio.sleep(GAP_S)
