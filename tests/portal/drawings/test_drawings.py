"""Pictures and figures, from plain data."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

import pytest

from portal.choices import JobState, MoveKind
from portal.drawings.bars import draw_phases, draw_promise, draw_quota
from portal.drawings.figures import ago, count, share, size, span
from portal.drawings.icons import SHAPES, icon
from portal.drawings.ledger import Cell, draw_row
from portal.drawings.lines import draw_lines
from portal.drawings.strip import Life, Mark, Stretch, draw_strip

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("bytes_", "words"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1536, "1.5 KiB"),
        (80 * 2**30, "80 GiB"),
        (2**60, "1024 PiB"),
        (None, "—"),
    ],
)
def test_sizes(bytes_: int | None, words: str) -> None:
    assert size(bytes_) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (0.421, "0.42 s"), (9.99, "9.99 s"), (61, "1 min 1 s"), (3600, "1 h"),
     (183600, "2 d 3 h"), (-5, "0 s"), (None, "—")],
)  # fmt: skip
def test_spans(seconds: float | None, words: str) -> None:
    assert span(seconds) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(2, "just now"), (-2, "just now"), (59, "59 s ago"), (-7200, "in 2 h"), (200000, "2 d ago")],
)
def test_ages(seconds: int, words: str) -> None:
    assert ago(NOON - timedelta(seconds=seconds), NOON) == words


def test_counts_and_shares() -> None:
    assert count(1, "job") == "1 job"
    assert count(1200, "job") == "1,200 jobs"
    assert share(1, 3) == "33 %"
    assert share(1, 0) == "—"


def test_every_state_and_every_move_has_an_icon_of_its_own() -> None:
    for name in (*JobState.values, *MoveKind.values):
        assert name in SHAPES
    assert len({SHAPES[state] for state in JobState.values}) == len(JobState.values)
    for name in SHAPES:
        ElementTree.fromstring(icon(name))
    assert 'role="img"' in icon("well", "well")


def life(*stretches: Stretch, marks: tuple[Mark, ...] = ()) -> Life:
    return Life(begins=NOON, ends=NOON + timedelta(hours=1), stretches=stretches, marks=marks)


def test_a_strip_shows_where_the_time_went() -> None:
    ran = Stretch(
        tone="running",
        begins=NOON + timedelta(minutes=15),
        ends=NOON + timedelta(minutes=45),
        label="node-a",
    )
    moved = Mark(at=NOON + timedelta(minutes=30), kind="migrate", title="<Moved>")
    drawn = ElementTree.fromstring(draw_strip(life(ran, marks=(moved,))))
    rect = drawn.find(".//g[@class='stretch tone-running']/rect")
    assert rect is not None
    assert (rect.get("x"), rect.get("width")) == ("25.000%", "50.000%")
    assert drawn.get("aria-label") == "Life of the job: running 30 min"
    assert [title.text for title in drawn.iter("title")] == ["Running node-a for 30 min", "<Moved>"]


def test_a_short_stretch_can_be_seen_and_stays_within_the_strip() -> None:
    end = NOON + timedelta(hours=1)
    blink = Stretch(tone="moving", begins=end - timedelta(seconds=1), ends=end)
    rect = ElementTree.fromstring(draw_strip(life(blink))).find(".//g/rect")
    assert rect is not None
    left, width = float(rect.attrib["x"][:-1]), float(rect.attrib["width"][:-1])
    assert width > 0.3
    assert left + width <= 100.001


def test_a_life_without_length_is_drawn() -> None:
    ElementTree.fromstring(draw_strip(Life(begins=NOON, ends=NOON)))


@pytest.mark.parametrize(
    ("used", "reserved", "limit"), [(0, 0, 0), (3, 8, 8), (12, 8, None), (5, 0, 9)]
)
def test_a_quota_is_drawn_within_its_bar(used: int, reserved: int, limit: int | None) -> None:
    drawn = ElementTree.fromstring(draw_quota(used=used, reserved=reserved, limit=limit, label="x"))
    widths = {
        rect.attrib["class"]: float(rect.attrib["width"][:-1])
        for rect in drawn.iter("rect")
        if rect.attrib["class"].startswith("part")
    }
    assert sum(widths.values()) <= 100.01
    assert ("part-borrowed" in widths) == (used > reserved)


def test_a_broken_promise_stands_out_without_colour() -> None:
    cells = [Cell(verdict="kept", words="9 <10"), Cell(verdict="", words=""),
             Cell(verdict="broken", words="late")]  # fmt: skip
    drawn = ElementTree.fromstring(draw_row(cells, "vision & co"))
    kept, broken = (part for part in drawn if part.get("class") in {"kept", "broken"})
    assert drawn.get("aria-label") == "vision & co"
    assert float(broken.get("height", 0)) > 2 * float(kept.get("height", 0))
    assert kept[0].text == "9 <10"
    assert float(broken.get("x", "0%").rstrip("%")) == pytest.approx(66.667)


@pytest.mark.parametrize(("fraction", "part"), [(0.95, "part-own"), (0.9, "part-short")])
def test_the_bar_of_a_promise_tells_whether_it_was_kept(fraction: float, part: str) -> None:
    assert part in draw_promise(fraction=fraction, promise=0.95, label="")


def test_phases_fill_the_bar_in_their_order() -> None:
    drawn = ElementTree.fromstring(draw_phases({"dump": 3.0, "freeze": 1.0}))
    assert [part.get("width") for part in drawn] == ["25.00%", "75.00%"]
    assert drawn[1].get("x") == "25.00%"
    assert draw_phases({}) == ""


def test_lines_have_marks_and_one_point_is_seen() -> None:
    drawn = draw_lines([[(0.5, 2.0)], []], 4.0, "use", [0.25])
    shapes = [part.tag for part in ElementTree.fromstring(drawn)]
    assert shapes == ["polygon", "polyline", "line"]
