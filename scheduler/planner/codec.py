"""Snapshot, Policy and Plan to and from JSON, with a version: to take a live case home.

Fields at their default are left out. A newer field than this code knows is an error that names it,
an older document reads with the defaults.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import StrEnum
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from scheduler.planner.decisions import Hold, Migrate, Place, Plan, Preempt, Resize
from scheduler.planner.policy import Policy
from scheduler.planner.snapshot import Snapshot

VERSION = 1
DECISIONS = {kind.__name__.lower(): kind for kind in (Place, Preempt, Migrate, Resize, Hold)}


class CodecError(ValueError):
    """A document that is not a planner's case, or of another version; says where it is wrong."""


def dump_case(
    snapshot: Snapshot, policy: Policy | None = None, plan: Plan | None = None, **notes: object
) -> str:
    """One JSON document with a snapshot, and the policy and the plan that belong to it."""
    document: dict[str, object] = {"version": VERSION, "snapshot": write(snapshot)}
    if policy is not None:
        document["policy"] = write(policy)
    if plan is not None:
        document["plan"] = write_plan(plan)
    return json.dumps(document | notes, ensure_ascii=False, allow_nan=False)


def load_case(text: str) -> tuple[Snapshot, Policy | None, Plan | None]:
    """Read what `dump_case` wrote. Raises CodecError."""
    try:
        document = json.loads(text)
    except ValueError as error:
        raise CodecError(f"not JSON: {error}") from error
    if not isinstance(document, dict) or document.get("version") != VERSION:
        found = document.get("version") if isinstance(document, dict) else None
        raise CodecError(f"version {found!r} cannot be read, only {VERSION}")
    if "snapshot" not in document:
        raise CodecError("snapshot: missing")
    snapshot: Snapshot = read(Snapshot, document["snapshot"], "snapshot")
    policy = read(Policy, document["policy"], "policy") if "policy" in document else None
    plan = read_plan(document["plan"]) if "plan" in document else None
    return snapshot, policy, plan


def write_plan(plan: Plan) -> list[dict[str, object]]:
    """A plan as plain values."""
    return [{"decision": type(one).__name__.lower(), **write(one)} for one in plan]


def read_plan(values: object) -> Plan:
    """A plan from plain values. Raises CodecError."""
    if not isinstance(values, list):
        raise CodecError("plan: not a list")
    found = []
    for index, value in enumerate(values):
        where = f"plan[{index}]"
        kind = DECISIONS.get(str(value.get("decision"))) if isinstance(value, dict) else None
        if kind is None:
            raise CodecError(f"{where}: no such decision")
        rest = {name: inner for name, inner in value.items() if name != "decision"}
        found.append(read(kind, rest, where))
    return tuple(found)


def write(value: Any) -> Any:
    """A value of the planner as plain values that JSON knows."""
    if isinstance(value, StrEnum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: write(inner)
            for field in _fields(type(value))
            if not _is_default(field, inner := getattr(value, field.name))
        }
    if isinstance(value, Mapping):
        return {str(key): write(inner) for key, inner in value.items()}
    if isinstance(value, frozenset):
        return sorted(write(inner) for inner in value)
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return str(value)
    if isinstance(value, str | int | float) or value is None:
        return value
    return [write(inner) for inner in value]


def _is_default(field: Field[Any], value: object) -> bool:
    if field.default is not MISSING:
        return type(value) is type(field.default) and bool(value == field.default)
    return field.default_factory is not MISSING and value == field.default_factory()


@cache
def _fields(kind: type[Any]) -> tuple[Field[Any], ...]:
    return fields(kind)


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    return get_type_hints(kind)


def read(kind: Any, value: Any, where: str) -> Any:
    """A value of the planner from plain values. Raises CodecError, which says where."""
    origin = get_origin(kind)
    if hasattr(kind, "__supertype__"):
        return read(kind.__supertype__, value, where)
    if origin in (Union, UnionType):
        return _read_optional(kind, value, where)
    if is_dataclass(kind):
        return _read_record(kind, value, where)
    if origin in (tuple, frozenset) or origin is Sequence:
        inner = get_args(kind)[0]
        items = _expect(value, list, where)
        found = (read(inner, one, f"{where}[{index}]") for index, one in enumerate(items))
        return frozenset(found) if origin is frozenset else tuple(found)
    if origin is Mapping:
        inner = get_args(kind)[1]
        items = _expect(value, dict, where).items()
        return {key: read(inner, one, f"{where}.{key}") for key, one in items}
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        try:
            return kind(value)
        except ValueError as error:
            raise CodecError(f"{where}: {error}") from error
    if kind is float:
        return _read_number(value, where)
    return value if kind is object else _expect(value, kind, where)


def _read_optional(kind: Any, value: Any, where: str) -> Any:
    if value is None:
        return None
    return read(next(one for one in get_args(kind) if one is not type(None)), value, where)


def _read_record(kind: Any, value: Any, where: str) -> Any:
    value = _expect(value, dict, where)
    hints = _hints(kind)
    unknown = sorted(set(value) - set(hints))
    if unknown:
        raise CodecError(f"{where}.{unknown[0]}: unknown")
    try:
        return kind(
            **{name: read(hints[name], one, f"{where}.{name}") for name, one in value.items()}
        )
    except TypeError as error:
        raise CodecError(f"{where}: {error}") from error


def _read_number(value: Any, where: str) -> float:
    if isinstance(value, str) and value in ("inf", "-inf"):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CodecError(f"{where}: not a number")
    return value


def _expect(value: Any, kind: type[Any], where: str) -> Any:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise CodecError(f"{where}: not a {kind.__name__}")
    return value
