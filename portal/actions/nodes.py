"""Enrol nodes, and say what may land on them; admins only."""

from __future__ import annotations

import re
import secrets
from typing import Any

from django.db import IntegrityError, transaction

from portal import events
from portal.access import require_admin
from portal.actions.audit import record
from portal.actions.promising import lock_turns
from portal.actions.tokens import digest
from portal.choices import PlacementState
from portal.models import Node, PlacedReplica, User
from portal.refusals import Refused

PREFIX = "tn_"
NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
PLACES = ("region", "cluster", "rack")


def create_node(user: User, name: str, **places: str) -> tuple[Node, str]:
    """Enrol a node and answer it with the token that its agent shows; the token is nowhere kept."""
    require_admin(user)
    if not NAME.fullmatch(name):
        raise Refused({"name": "Use 1 to 63 small letters, digits and inner hyphens."})
    secret = new_secret()
    node = Node(name=name, token_digest=digest(secret))
    set_places(node, places)
    try:
        with transaction.atomic():
            node.save()
            record(user, "node created", f"node {name}", {}, describe_node(node))
            events.node_changed(node)
    except IntegrityError:
        raise Refused({"name": f"There is a node {name!r} already."}, id="taken") from None
    return node, secret


def rotate_token(user: User, node: Node) -> str:
    """Give a node a new token; an agent that shows the old one is refused from now on."""
    require_admin(user)
    secret = new_secret()
    with transaction.atomic():
        node.token_digest = digest(secret)
        node.save(update_fields=["token_digest"])
        record(user, "token renewed", f"node {node.name}")
    return secret


def find_node(secret: str) -> Node | None:
    """Answer the node that this token is for."""
    return Node.objects.filter(token_digest=digest(secret)).first()


def cordon_node(user: User, node: Node, note: str = "") -> None:
    """Let nothing new land on a node; what runs there stays."""
    change_node(user, node, "node cordoned", cordoned=True, draining=False, note=note)


def drain_node(user: User, node: Node, note: str = "") -> None:
    """Let nothing new land on a node and move away what runs there."""
    change_node(user, node, "node draining", cordoned=False, draining=True, note=note)


def uncordon_node(user: User, node: Node) -> None:
    """Let jobs land on a node again, whether it was cordoned or draining."""
    change_node(user, node, "node opened", cordoned=False, draining=False, note="")


def place_node(user: User, node: Node, **places: str) -> None:
    """Say in which region, cluster and rack a node stands."""
    change_node(user, node, "node placed", **places)


def change_node(user: User, node: Node, act: str, **changes: Any) -> None:
    require_admin(user)
    if len(changes.get("note", "")) > 200:
        raise Refused({"note": "Say why in 200 characters at most."})
    before = describe_node(node)
    set_places(node, {key: changes.pop(key) for key in PLACES if key in changes})
    for field, value in changes.items():
        setattr(node, field, value)
    with transaction.atomic():
        if node.cluster != before["cluster"]:
            # What the planner of the one cluster promised here the other's must see.
            lock_turns((node.cluster, before["cluster"]))
        # Only these fields: its agent's socket writes the others at the same time.
        node.save(update_fields=["cordoned", "draining", "note", *PLACES])
        record(user, act, f"node {node.name}", before, describe_node(node))
        events.node_changed(node)
        events.wake()


def remove_node(user: User, node: Node) -> None:
    """Forget a node that runs nothing; its agent is refused from now on."""
    require_admin(user)
    if (
        PlacedReplica.objects.filter(node=node)
        .exclude(placement__state=PlacementState.ENDED)
        .exists()
    ):
        raise Refused(f"Jobs run on {node.name}; drain it first.", id="node-in-use", conflict=True)
    with transaction.atomic():
        record(user, "node removed", f"node {node.name}", describe_node(node), {})
        events.node_changed(node)
        node.delete()
        events.wake()


def set_places(node: Node, places: dict[str, str]) -> None:
    for field, value in places.items():
        if field not in PLACES:
            raise Refused({field: f"A node has {', '.join(PLACES)}."})
        if len(value) > 60:
            raise Refused({field: f"Name the {field} with 60 characters at most."})
        setattr(node, field, value)


def describe_node(node: Node) -> dict[str, Any]:
    return {field: getattr(node, field) for field in ("cordoned", "draining", "note", *PLACES)}


def new_secret() -> str:
    return PREFIX + secrets.token_urlsafe(32)
