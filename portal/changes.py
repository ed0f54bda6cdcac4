"""Who looks at the whole fleet every second asks here what was written since the last look.

Triggers in the database log every write of a row that the planner looks at, whoever writes it and
by whatever way. `mark` says where the log stands, `since` what was written after a mark.

Nothing is missed, also when transactions commit in another order than they wrote:

* PostgreSQL: an entry carries the id of its transaction, and a mark the lowest id that was still
  under way at the look. All below it was seen or is undone for ever; all others are told, some
  twice.
* SQLite: one writes at a time, so the order of entries is the order of commits.

Where the triggers are missing (a migration is under way, or failed) there is no mark.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import connection, transaction

from portal.models import Change

KEPT = 100_000
"""Entries that stay in the log; who is further behind looks at everything."""
PREFIX = "note_change_"


@dataclass(frozen=True, slots=True)
class Watched:
    """A table whose writes are logged as changes of ``subject`` ``key``."""

    table: str
    subject: str
    key: str
    columns: Sequence[str] = ()
    """An update counts if one of these changes."""
    nulls: Sequence[str] = ()
    """... or if one of these becomes null or stops to be."""


WATCHED = (
    Watched("portal_job", "job", "id", (
        "tenant_id", "tier_id", "partition_id", "replicas", "gpus_per_replica", "fewest_devices",
        "device_kind", "device_memory", "cpus_per_replica", "memory_per_replica", "expected_s",
        "state", "remedy", "submitted_at", "waiting_since", "running_since", "pause_asked",
        "move_asked", "wanted_nodes", "avoid_nodes", "asked_devices", "untouchable_until", "moves",
        "last_moved_at", "worked_s", "delivered", "entitled", "accounted_at", "recipe", "home",
    )),
    Watched("portal_placement", "job", "job_id", ("job_id", "epoch", "state", "want")),
    Watched("portal_placedreplica", "placement", "placement_id", (
        "placement_id", "rank", "node_id", "devices", "state",
    )),
    Watched("portal_checkpoint", "job", "job_id", (
        "job_id", "number", "state", "collected", "bytes_raw",
    )),
    Watched("portal_move", "move", "job_id", (
        "job_id", "remedy", "called_off", "resumed_at", "phases", "from_nodes", "to_nodes",
        "bytes_raw",
    )),
    Watched("portal_profile", "profile", "job_id", (
        "job_id", "recipe", "device_kind", "at", "source", "devices", "share", "points", "working",
        "cached", "read", "storage", "error",
    )),
    Watched("portal_node", "node", "id", (
        "name", "region", "cluster", "rack", "cordoned", "draining", "abilities", "cpus", "memory",
    ), nulls=("heard_at", "lost_at")),
    Watched("portal_device", "node", "node_id", (
        "node_id", "uid", "index", "kind", "memory", "sick",
    )),
    Watched("portal_partition_nodes", "node", "node_id", ("partition_id", "node_id")),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in the log of one database."""

    database: tuple[Any, ...]
    stamp: int


def mark() -> Mark | None:
    """Where the log stands now; ``None`` where there is none to rely on.

    Ask within the transaction that looks at the rows, before it does.
    """
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(
                "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint,"
                " pg_postmaster_start_time(), pg_relation_filenode('portal_change'),"
                " current_database(), (SELECT count(*) FROM pg_trigger WHERE tgenabled <> 'D'"
                " AND tgname = ANY(%s))",
                [list(_triggers())],
            )
        else:
            cursor.execute(
                "SELECT (SELECT seq FROM sqlite_sequence WHERE name = 'portal_change'),"
                " (SELECT count(*) FROM sqlite_master WHERE type = 'trigger'"
                f" AND name IN ({', '.join(['%s'] * len(_triggers()))}))",
                list(_triggers()),
            )
        stamp, *database, count = cursor.fetchone()
    if count != len(_triggers()):
        return None
    return Mark((*database, *_file()), stamp or 0)


def _file() -> tuple[Any, ...]:
    """Which file the database is, where it is one."""
    if connection.vendor == "postgresql":
        return ()
    name = Path(connection.settings_dict["NAME"])
    found = name.stat() if name.exists() else None
    return (str(name), found and (found.st_dev, found.st_ino))


def since(old: Mark, new: Mark) -> dict[str, set[int]] | None:
    """Keys by subject of all that was written between two marks, and perhaps of some more.

    ``None``: anything may have changed.
    """
    if old.database != new.database or new.stamp < old.stamp:
        return None
    if connection.vendor == "postgresql":
        entries = Change.objects.filter(stamp__gte=old.stamp)
    else:
        if new.stamp == old.stamp:
            return {}
        entries = Change.objects.filter(id__gt=old.stamp)
    found: dict[str, set[int]] = defaultdict(set)
    for subject, key in entries.values_list("subject", "key").distinct().order_by():
        found[subject].add(key)
    if "all" in found or any(floor > old.stamp for floor in found.pop("floor", ())):
        return None
    return found


def forget_old(kept: int = KEPT) -> None:
    """Drop all but the newest entries, and say so to those who have not read them."""
    order = "stamp" if connection.vendor == "postgresql" else "id"
    last = Change.objects.order_by(f"-{order}").values_list(order, flat=True)[kept : kept + 1]
    for floor in last:
        with transaction.atomic():
            Change.objects.filter(**{f"{order}__lte": floor}).delete()
            _note("floor", floor + 1)


def _note(subject: str, key: int = 0) -> None:
    stamp = "pg_current_xact_id()::text::bigint" if connection.vendor == "postgresql" else "0"
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO portal_change (subject, key, stamp) VALUES (%s, %s, {stamp})",
            [subject, key],
        )


def install(**_: Any) -> None:
    """Put the triggers in place, if they are not; whoever has looked before looks at everything."""
    if _installed() == set(_triggers()):
        return
    with transaction.atomic():
        remove()
        with connection.cursor() as cursor:
            for statements in _triggers().values():
                for statement in statements:
                    cursor.execute(statement)
        _note("all")


def before_migrating(plan: Sequence[Any] = (), **_: Any) -> None:
    """Take the triggers away while tables change their shape: SQLite copies tables without them."""
    if plan:
        remove()


def remove() -> None:
    """Take the triggers away; from now on nobody relies on the log."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(
                "SELECT tgname, tgrelid::regclass::text FROM pg_trigger WHERE tgname LIKE %s",
                [f"{PREFIX}%"],
            )
            for name, table in cursor.fetchall():
                cursor.execute(f"DROP TRIGGER {name} ON {table}")
        else:
            for name in sorted(_installed()):
                cursor.execute(f"DROP TRIGGER {name}")


def _installed() -> set[str]:
    catalogue = (
        "SELECT tgname FROM pg_trigger WHERE tgname LIKE %s AND tgenabled <> 'D'"
        if connection.vendor == "postgresql"
        else "SELECT name FROM sqlite_master WHERE type = 'trigger' AND name LIKE %s"
    )
    with connection.cursor() as cursor:
        cursor.execute(catalogue, [f"{PREFIX}%"])
        return {name for (name,) in cursor.fetchall()}


def _triggers() -> dict[str, list[str]]:
    """The statements that make each trigger, by its name; a name stands for its very statements."""
    known = _TRIGGERS.get(connection.vendor)
    if known is None:
        write = _postgresql if connection.vendor == "postgresql" else _sqlite
        known = _TRIGGERS[connection.vendor] = {}
        for watched in WATCHED:
            for statements in write(watched):
                digest = hashlib.sha256("".join(statements).encode()).hexdigest()[:8]
                name = f"{PREFIX}{digest}"
                known[name] = [statement.replace("NAME", name) for statement in statements]
    return known


_TRIGGERS: dict[str, dict[str, list[str]]] = {}


def _differs(watched: Watched, distinct: str) -> str:
    tests = [f'OLD."{name}" {distinct} NEW."{name}"' for name in watched.columns]
    tests += [f'(OLD."{name}" IS NULL) <> (NEW."{name}" IS NULL)' for name in watched.nulls]
    return " OR ".join(tests)


def _sqlite(watched: Watched) -> Iterator[list[str]]:
    into = "INSERT INTO portal_change (subject, key, stamp)"
    subject, key = watched.subject, watched.key
    of_new = f"{into} VALUES ('{subject}', NEW.{key}, 0);"
    of_old = f"{into} SELECT '{subject}', OLD.{key}, 0"
    for event, when, body in (
        ("INSERT", "", of_new),
        ("DELETE", "", f"{of_old};"),
        (
            "UPDATE",
            f"WHEN {_differs(watched, 'IS NOT')}",
            f"{of_new} {of_old} WHERE OLD.{key} <> NEW.{key};",
        ),
    ):
        yield [
            f"CREATE TRIGGER NAME AFTER {event} ON {watched.table} FOR EACH ROW {when}"
            f" BEGIN {body} END"
        ]


def _postgresql(watched: Watched) -> Iterator[list[str]]:
    subject, key = watched.subject, watched.key
    stamp = "pg_current_xact_id()::text::bigint"

    def note(row: str) -> str:
        values = f"('{subject}', {row}.{key}, {stamp})"
        return f"INSERT INTO portal_change (subject, key, stamp) VALUES {values};"

    moved = f"IF OLD.{key} <> NEW.{key} THEN {note('OLD')} END IF;"
    for event, when, body in (
        ("INSERT", "", note("NEW")),
        ("DELETE", "", note("OLD")),
        ("UPDATE", f"WHEN ({_differs(watched, 'IS DISTINCT FROM')})", f"{note('NEW')} {moved}"),
    ):
        yield [
            "CREATE OR REPLACE FUNCTION NAME() RETURNS trigger LANGUAGE plpgsql AS $$"
            f" BEGIN {body} RETURN NULL; END $$",
            f"CREATE TRIGGER NAME AFTER {event} ON {watched.table} FOR EACH ROW {when}"
            " EXECUTE FUNCTION NAME()",
        ]
