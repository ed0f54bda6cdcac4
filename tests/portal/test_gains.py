"""Measured points become a matrix and one plain sentence."""

from __future__ import annotations

from typing import Any

import pytest

from portal.gains import matrix_of, sentence_of
from portal.models import Profile

GIB = 2**30


def profile(*points: tuple[float, float], **more: Any) -> Profile:
    told = {"share": 4.0, "devices": 1, "working": 2 * GIB, **more}
    return Profile(points=[[cpus, pace, cpus, 0.0] for cpus, pace in points], **told)


@pytest.mark.parametrize(
    ("points", "says"),
    [
        ([(1, 0.4), (2, 0.98), (4, 1.0)],
         "gains nothing beyond 2 CPUs a replica: 98 % of its speed with 50 % of its CPUs, 40 %"),
        ([(1, 1.0), (4, 1.0)], "gains nothing beyond 1 CPU a replica: 100 % of its speed"),
        ([(1, 0.25), (2, 0.5), (4, 1.0)], "needs its whole share of 4 CPUs a replica: 25 %"),
        ([(1, 0.25), (4, 1.0), (6, 1.5), (8, 1.5)], "50 % faster with 6 CPUs a replica"),
        ([(4, 1.0)], "share is 4 CPUs"),
        ([], "Nothing was measured"),
    ],
)  # fmt: skip
def test_the_sentence_says_what_was_found(points: list[tuple[float, float]], says: str) -> None:
    assert says in sentence_of(profile(*points))


def test_a_failure_says_why() -> None:
    assert sentence_of(profile(error="Its pace changed.")) == "Its pace changed."


def test_the_memory_axis_is_predicted_from_what_is_read_and_cached() -> None:
    reads = profile((2, 0.5), (4, 1.0), cached=4 * GIB, read=0.5 * GIB, storage=0.1 * GIB)
    matrix = matrix_of(reads)
    assert matrix is not None
    assert matrix.memory == (2 * GIB, 4 * GIB, 6 * GIB)
    assert matrix.paces == ((0.2, 0.4, 0.5), (0.2, 0.4, 1.0))
    quiet = matrix_of(profile((4, 1.0), cached=4 * GIB, read=0.0, storage=0.1 * GIB))
    assert quiet is not None and quiet.paces == ((1.0, 1.0, 1.0),)
    bare = matrix_of(profile((4, 1.0), cached=1000, read=1.0, storage=1.0))
    assert bare is not None and bare.memory == (2 * GIB,)


def test_a_matrix_is_for_each_device() -> None:
    matrix = matrix_of(profile((4, 0.5), (8, 1.0), share=8.0, devices=2))
    assert matrix is not None
    assert (matrix.cpus, matrix.memory) == ((2.0, 4.0), (GIB,))
    assert matrix_of(profile()) is None
