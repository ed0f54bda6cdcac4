"""``python -m scheduler.simulator``: play a trace through the scheduler and compare policies."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from scheduler.planner import PRESETS, Decision
from scheduler.simulator.arrivals import Trace
from scheduler.simulator.fleet_file import fleet_named
from scheduler.simulator.fleets import Fleet
from scheduler.simulator.physics import Costs
from scheduler.simulator.records import decision_row, keep, read_record, record
from scheduler.simulator.report import ROWS, report
from scheduler.simulator.simulation import Progress, Result, policy_named, simulate
from scheduler.simulator.splitting import ALLOCATORS, Sensitivity, hosts_of, read_profiles
from scheduler.simulator.synthetic import dressed, recipe_named, synthetic
from scheduler.simulator.traces import FORMATS, read_speeds, read_trace

BAR = 30


def arguments() -> argparse.ArgumentParser:
    """The command line; ``docs/simulator.md`` has examples."""
    parser = argparse.ArgumentParser(prog="python -m scheduler.simulator", description=__doc__)
    parser.add_argument("trace", help="a file, or synthetic:PATTERN,jobs=N,load=X,devices=N")
    parser.add_argument("--fleet", required=True,
                        help="FLEET.toml, NODES.csv, pool:N, or NxM nodes x devices")  # fmt: skip
    parser.add_argument(
        "--policy", action="append", default=[], help=f"repeat to compare; {', '.join(PRESETS)}"
    )
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="switches")
    parser.add_argument("--costs", default="default", help="default, off, or a TOML file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="folder for run.json, jobs.csv and report.html")
    parser.add_argument("--with", action="append", default=[], type=Path, dest="kept",
                        metavar="RUN.json", help="an earlier run to show beside these")  # fmt: skip
    parser.add_argument("--decisions", action="store_true", help="also write decisions.csv")
    parser.add_argument("--reasons", action="store_true", help="count why jobs waited (slower)")
    parser.add_argument("--json", action="store_true", help="print the measures as JSON lines")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    reading = parser.add_argument_group("the trace")
    reading.add_argument("--format", choices=sorted(FORMATS), dest="format_name")
    reading.add_argument("--strict", action="store_true", help="refuse a trace with a broken line")
    reading.add_argument("--jobs", type=_count, help="only the first so many")
    reading.add_argument("--load", type=_positive, help="draw the arrivals together to this load")
    reading.add_argument("--like", type=Path, help="a trace that a synthetic one takes after")
    reading.add_argument("--speeds", type=Path, help="steps a second for a Gavel trace")
    reading.add_argument("--tiers", default="", help="premium=0.2,standard=0.3,basic=0.5")
    reading.add_argument("--elastic", type=_part, default=0.0, help="share of elastic jobs")
    reading.add_argument("--noise", type=_positive, help="how far users misjudge durations")
    splitting = parser.add_argument_group("CPUs and memory")
    splitting.add_argument("--sensitivity", type=Path, help="profiles of the models, CSV")
    splitting.add_argument("--allocator", choices=sorted(ALLOCATORS), default="tune")
    splitting.add_argument("--hosts", help="fleet behind a pool, a TOML file")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run; 0 when all went well, 2 with a sentence when something asked for cannot be."""
    options = arguments().parse_args(argv)
    try:
        return _run(options)
    except (ValueError, OSError) as error:
        print(f"simulator: {error}", file=sys.stderr)
        return 2


def _run(options: argparse.Namespace) -> int:
    fleet = fleet_named(options.fleet)
    sensitivity, iteration_s = _sensitivity(options)
    trace = _trace(options, fleet, iteration_s)
    costs = _costs(options.costs)
    switches = dict(_pair(text) for text in options.switches)
    earlier = [read_record(path) for path in options.kept]
    runs = []
    for name in options.policy or ["default"]:
        policy = policy_named(name, switches)
        rows: list[tuple[str, ...]] = []
        result = simulate(
            trace,
            fleet,
            policy,
            costs=costs,
            seed=options.seed,
            sensitivity=sensitivity,
            reasons=options.reasons,
            progress=None if options.quiet else _bar(policy.name),
            witness=_writer(rows) if options.decisions else None,
        )
        runs.append(_finish(result, options, rows))
    if options.out:
        (options.out / "report.html").write_text(report([*earlier, *runs]), encoding="utf-8")
    if not options.json:
        _print_table([*earlier, *runs])
    return 0


def _finish(
    result: Result, options: argparse.Namespace, rows: list[tuple[str, ...]]
) -> dict[str, object]:
    folder = options.out and options.out / result.policy.name.replace(" ", "_")
    run = keep(result, folder) if folder else record(result)
    if folder and options.decisions:
        with (folder / "decisions.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["at", "what", "job", "where", "reason", "beneficiary"])
            writer.writerows(rows)
    if options.json:
        print(json.dumps({**run["measures"], "timing": asdict(result.timing)}))
    return run


def _trace(options: argparse.Namespace, fleet: Fleet, iteration_s: dict[str, float]) -> Trace:
    kind, colon, recipe = options.trace.partition(":")
    if colon and kind == "synthetic":
        like = read_trace(options.like, strict=options.strict) if options.like else None
        trace = synthetic(recipe_named(recipe), seed=options.seed, like=like)
    else:
        trace = read_trace(
            Path(options.trace),
            format_name=options.format_name,
            strict=options.strict,
            speeds=read_speeds(options.speeds) if options.speeds else None,
            iteration_s=iteration_s,
        )
    for broken in trace.broken:
        print(f"{trace.name}, {broken}: left out", file=sys.stderr)
    for column in trace.unused:
        print(f"{trace.name}: the column {column!r} means nothing here", file=sys.stderr)
    if trace.left_out:
        said = f"{trace.left_out:,} lines need no device or never ran: left out"
        print(f"{trace.name}: {said}", file=sys.stderr)
    if not trace.arrivals:
        raise ValueError(f"{trace.name} holds no job that needs a device")
    if options.jobs:
        trace = trace.first(options.jobs)
    if options.load:
        trace = trace.at_load(options.load, fleet.devices)
    tiers = {
        name: _share(share) for name, share in map(_pair, filter(None, options.tiers.split(",")))
    }
    return dressed(
        trace, seed=options.seed, tiers=tiers, elastic=options.elastic, noise=options.noise
    )


def _sensitivity(options: argparse.Namespace) -> tuple[Sensitivity | None, dict[str, float]]:
    if not options.sensitivity:
        return None, {}
    matrices, iteration_s = read_profiles(options.sensitivity)
    hosts = hosts_of(fleet_named(options.hosts).nodes) if options.hosts else ()
    return (
        Sensitivity(matrices=matrices, allocator=options.allocator, hosts=hosts),
        iteration_s,
    )


def _costs(text: str) -> Costs:
    if text == "default":
        return Costs()
    return Costs.off() if text == "off" else Costs.read(Path(text))


def _share(text: str) -> float:
    try:
        return _part(text)
    except ValueError:
        raise ValueError(f"--tiers: {text!r} is no share between 0 and 1") from None


def _positive(text: str) -> float:
    if not 0 < float(text) < float("inf"):
        raise ValueError(text)
    return float(text)


def _part(text: str) -> float:
    if not 0 <= float(text) <= 1:
        raise ValueError(text)
    return float(text)


def _count(text: str) -> int:
    if int(text) < 1:
        raise ValueError(text)
    return int(text)


for _check, _name in ((_positive, "positive number"), (_part, "share"), (_count, "count")):
    _check.__name__ = _name  # argparse tells it: "invalid share value: '3'"


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"{text!r} should be KEY=VALUE")
    return key, value


def _writer(rows: list[tuple[str, ...]]) -> Callable[[float, Decision], None]:
    return lambda at, decision: rows.append(decision_row(at, decision))


def _bar(name: str) -> Callable[[Progress], None]:
    """A progress bar on the error stream; nothing when that is no terminal."""

    def show(progress: Progress) -> None:
        if not sys.stderr.isatty():
            return
        full = round(progress.share * BAR)
        end = "\n" if progress.finished == progress.jobs else ""
        print(
            f"\r{name} [{'#' * full}{'.' * (BAR - full)}] {progress.finished:,}/{progress.jobs:,}"
            f" jobs, day {progress.now / 86400:.1f}, {progress.waiting:,} waiting   ",
            end=end,
            file=sys.stderr,
            flush=True,
        )

    return show


def _print_table(runs: Sequence[dict[str, object]]) -> None:
    width = max(16, *(len(str(run["name"])) + 2 for run in runs))
    print(" " * 30 + "".join(f"{run['name']!s:>{width}}" for run in runs))
    for name, read, form in ROWS:
        cells = [read(run["measures"]) for run in runs]  # type: ignore[arg-type]
        print(
            f"{name:30}"
            + "".join(f"{'-' if cell is None else form.format(cell):>{width}}" for cell in cells)
        )


if __name__ == "__main__":
    sys.exit(main())
