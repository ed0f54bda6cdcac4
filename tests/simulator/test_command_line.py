"""The command line: what it prints, what it writes, what it says when it cannot."""

import json
from pathlib import Path

import pytest

from scheduler.simulator.__main__ import main


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "mine.csv"
    path.write_text("submit_time,duration,gpus\n0,10,2\n1,10,4\n2,5,2\n3,x,1\n")
    return path


def run(*words: object) -> int:
    return main([str(word) for word in words])


def test_it_compares_policies_in_a_table(trace: Path, capsys: pytest.CaptureFixture[str]):
    words = ("--policy", "pool-fifo", "--policy", "pool-fifo-backfill", "--costs", "off")
    assert run(trace, "--fleet", "pool:4", *words) == 0
    printed = capsys.readouterr()
    assert "pool-fifo-backfill" in printed.out.splitlines()[0]
    assert "Preemptions" in printed.out
    assert "line 5: duration is not a number: 'x'" in printed.err


def test_json_lines_hold_the_measures(trace: Path, capsys: pytest.CaptureFixture[str]):
    assert run(trace, "--fleet", "pool:4", "--policy", "pool-fifo", "--costs", "off", "--json") == 0
    measures = json.loads(capsys.readouterr().out)
    assert measures["completion_s"]["mean"] == pytest.approx((10 + 19 + 23) / 3)
    assert measures["timing"]["cycles"] > 0


def test_runs_are_kept_and_shown_beside_later_ones(trace: Path, tmp_path: Path):
    common = (trace, "--fleet", "pool:4", "--costs", "off", "--quiet")
    assert run(*common, "--policy", "pool-fifo", "--out", tmp_path / "a") == 0
    kept = tmp_path / "a" / "pool-fifo" / "run.json"
    assert run(*common, "--policy", "pool-sjf", "--with", kept, "--out", tmp_path / "b") == 0
    page = (tmp_path / "b" / "report.html").read_text()
    assert "pool-fifo" in page
    assert "pool-sjf" in page
    assert "Plotly.react(" in page
    assert "0 s to checkpoint, 0 s to restore, no time to carry" in page
    assert "<script src" not in page
    rows = (tmp_path / "a" / "pool-fifo" / "jobs.csv").read_text().splitlines()
    assert len(rows) == 4


def test_switches_change_a_policy(trace: Path, capsys: pytest.CaptureFixture[str]):
    words = ("--policy", "pool-fifo", "--set", "backfill=skip", "--costs", "off", "--json")
    assert run(trace, "--fleet", "pool:4", *words) == 0
    measures = json.loads(capsys.readouterr().out)
    assert measures["policy"] == "pool-fifo backfill=skip"
    assert measures["completion_s"]["mean"] == pytest.approx((10 + 19 + 5) / 3)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--fleet", "lots"), "neither pool:N"),
        (("--fleet", "pool:4", "--policy", "magic"), "'magic' is no policy"),
        (("--fleet", "pool:4", "--set", "speed=9"), "'speed' is no switch"),
        (("--fleet", "pool:4", "--set", "migration=maybe"), "cannot be 'maybe'"),
        (("--fleet", "pool:4", "--set", "migration"), "KEY=VALUE"),
        (("--fleet", "pool:4", "--strict"), "line 5"),
        (("--fleet", "pool:4", "--costs", "none.toml"), "none.toml"),
        (("--fleet", "pool:4", "--with", "none.json"), "none.json"),
    ],
)
def test_it_says_what_cannot_be(
    trace: Path, words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
):
    assert run(trace, *words) == 2
    assert said in capsys.readouterr().err


def test_a_synthetic_trace_needs_no_file(capsys: pytest.CaptureFixture[str]):
    words = ("--fleet", "4x8", "--policy", "fifo-backfill", "--json", "--jobs", "20")
    assert run("synthetic:poisson,jobs=50,devices=32", *words) == 0
    assert json.loads(capsys.readouterr().out)["jobs"] == 20
    assert run("synthetic:tidal", "--fleet", "4x8") == 2
    assert run("synthetic:poisson,moons=2", "--fleet", "4x8") == 2


def test_progress_can_stop_a_simulation():
    from scheduler.simulator import Costs, policy_named, pool, simulate
    from tests.simulator.scenes import scene

    trace = scene(*(f"{n} 1 1" for n in range(500)))
    result = simulate(
        trace, pool(1), policy_named("pool-fifo"), costs=Costs.off(), progress=lambda _: False
    )
    assert result.stopped
    assert len(result.outcomes) < 500


def test_numbers_that_make_no_sense_are_refused(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (("--load", "0"), ("--elastic", "3"), ("--noise", "-1"), ("--jobs", "0")):
        with pytest.raises(SystemExit):
            run(trace, "--fleet", "pool:4", *words)
        assert f"argument {words[0]}: invalid" in capsys.readouterr().err
    assert run(trace, "--fleet", "pool:4", "--tiers", "premium=x") == 2
    assert "no share between 0 and 1" in capsys.readouterr().err
    assert run("synthetic:poisson,load=0", "--fleet", "pool:4") == 2
    assert "load must be more than 0" in capsys.readouterr().err


def test_a_trace_without_a_job_and_a_column_without_a_meaning_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("submit_time,duration,gpus,tennant\n0,10,0,vision\n")
    assert run(path, "--fleet", "pool:4") == 2
    said = capsys.readouterr().err
    assert "the column 'tennant' means nothing here" in said
    assert "1 lines need no device or never ran: left out" in said
    assert "mine holds no job that needs a device" in said
