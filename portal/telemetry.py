"""The newest second of every node, kept in the broker and nowhere else."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from typing import Any

import redis

from agents.protocol import Telemetry
from portal.broker import reach

log = logging.getLogger(__name__)

KEY = "tidepool:telemetry:{}"
KEPT_S = 30


def keep(node: str, telemetry: Telemetry) -> dict[str, Any]:
    """Keep a node's second for ``KEPT_S`` seconds, and answer its plain form.

    While the broker is away seconds are lost, and nothing else.
    """
    plain = {
        "at": telemetry.at,
        "cpus": telemetry.cpus,
        "memory": telemetry.memory,
        "devices": {
            use.id: {"utilisation": use.utilisation, "memory": use.memory, "power": use.power}
            for use in telemetry.devices
        },
        "replicas": {
            f"{use.job}/{use.rank}": {"cpus": use.cpus, "memory": use.memory}
            for use in telemetry.replicas
        },
    }
    try:
        with reach() as broker:
            broker.set(KEY.format(node), json.dumps(plain), ex=KEPT_S)
    except (redis.RedisError, OSError) as error:
        log.debug("the broker is away, a second of %s is not kept: %s", node, error)
    return plain


def latest(nodes: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The newest second of each node that was heard of lately; none when the broker is away."""
    names = list(nodes)
    if not names:
        return {}
    try:
        with reach() as broker:
            values: Any = broker.mget([KEY.format(name) for name in names])
    except (redis.RedisError, OSError):
        return {}
    return {name: json.loads(value) for name, value in zip(names, values, strict=True) if value}
