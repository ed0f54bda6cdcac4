"""How a job can be interrupted where it runs, and why not more gently."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from portal.choices import Remedy
from portal.models import Node


@dataclass(frozen=True, slots=True)
class Verdict:
    """A remedy, and the reason that a gentler one is not possible (empty when transparent)."""

    remedy: Remedy
    reason: str = ""


def judge(nodes: Iterable[Node], *, replicas: int, on_gpus: bool = False) -> Verdict:
    """The gentlest remedy that all of these nodes are able to."""
    chosen = list(nodes)
    needs = ["checkpoint", "migrate"]
    if replicas > 1:
        needs.append("network")
    if on_gpus:
        needs.append("device_checkpoint")
    lacking = [
        f"{node.name} cannot {need.replace('_', ' ')}: {node.why_not(need)}"
        for node in chosen
        for need in needs
        if not node.able(need)
    ]
    if chosen and not lacking:
        return Verdict(Remedy.TRANSPARENT)
    reason = (lacking or ["no node has declared what it can do"])[0][:300]
    if chosen and all(node.able("pause") for node in chosen):
        return Verdict(Remedy.PAUSE, reason)
    return Verdict(Remedy.REQUEUE, reason)
