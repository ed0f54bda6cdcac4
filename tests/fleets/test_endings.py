"""What became of operations, and when jobs stood still, is told from receipts and times."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tests.fleets.endings import Asked, endings, standstills


def at(second: float) -> str:
    return datetime.fromtimestamp(second, tz=UTC).isoformat()


def receipt(kind: str, began: float, **more: Any) -> dict[str, Any]:
    told = {"kind": kind, "began_at": at(began), "left_at": None, "resumed_at": None}
    return {**told, "called_off": "", **more}


def cut(began: float, state: str, **more: Any) -> dict[str, Any]:
    told = {"periodic": True, "began_at": at(began), "committed_at": None, "error": ""}
    return {**told, "state": state, **more}


def asked(act: str, second: float) -> Asked:
    return Asked(job=7, act=act, at=second)


def test_each_operation_is_told_by_the_first_trace_of_its_kind_after_it() -> None:
    found = endings(
        [asked("migrate", 100), asked("checkpoint", 110), asked("migrate", 120)],
        [
            receipt("migrate", 121, called_off="It took longer than 60 s."),
            receipt("migrate", 100.5, resumed_at=104.0),
            receipt("recover", 101, resumed_at=104.0),
        ],
        [cut(100.5, "committed", periodic=False), cut(110, "committed", committed_at=at(112))],
    )
    assert [(each.how, each.why, each.seconds) for each in found] == [
        ("done", "", 4.0),
        ("done", "", 2.0),
        ("called off", "It took longer than 60 s.", None),
    ]


def test_what_is_asked_again_before_it_began_is_told_once() -> None:
    found = endings(
        [asked("resize", 10), asked("resize", 40)], [receipt("resize", 41, resumed_at=43.0)], []
    )
    assert [(each.how, each.seconds) for each in found] == [("nothing", None), ("done", 3.0)]


def test_a_pause_is_done_once_the_job_has_left_and_nothing_is_told_as_nothing() -> None:
    found = endings(
        [asked("pause", 10), asked("resize", 20), asked("cancel", 30)],
        [receipt("pause", 10, left_at=at(12), resumed_at=17.0)],
        [],
    )
    assert [(each.how, each.seconds) for each in found] == [
        ("done", 2.0),
        ("nothing", None),
        ("done", None),
    ]


def test_a_job_stood_while_it_did_not_compute_and_was_not_paused() -> None:
    times = [1.0, 1.1, 9.0, 9.1, 20.0, 30.0]
    receipts = [
        receipt("migrate", 1.05, resumed_at=8.9),
        receipt("pause", 9.2, left_at=at(10), resumed_at=19.0),
    ]
    found = standstills(7, times, receipts)
    assert [(round(each.seconds, 1), each.why) for each in found] == [
        (7.9, ("migrate",)),
        (10.0, ()),
    ]
