"""One HTML file that compares runs: a table of measures and figures, with everything inside."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from scheduler.simulator.records import Record

Figure = dict[str, Any]
"""A Plotly figure as data and layout."""

HOUR = 3600.0

ROWS: tuple[tuple[str, Callable[[Mapping[str, Any]], float | None], str], ...] = (
    ("Jobs finished", lambda m: m["finished"], "{:,.0f}"),
    ("Jobs that never ended", lambda m: m["jobs"] - m["finished"], "{:,.0f}"),
    ("Mean completion, h", lambda m: _hours(m, "completion_s", "mean"), "{:,.2f}"),
    ("Completion p50, h", lambda m: _hours(m, "completion_s", "p50"), "{:,.2f}"),
    ("Completion p95, h", lambda m: _hours(m, "completion_s", "p95"), "{:,.2f}"),
    ("Completion p99, h", lambda m: _hours(m, "completion_s", "p99"), "{:,.2f}"),
    ("Mean wait, h", lambda m: _hours(m, "wait_s", "mean"), "{:,.2f}"),
    ("Wait p99, h", lambda m: _hours(m, "wait_s", "p99"), "{:,.2f}"),
    ("Makespan, h", lambda m: m["makespan_s"] / HOUR, "{:,.1f}"),
    ("Allocation, %", lambda m: 100 * m["allocation"], "{:.1f}"),
    ("Utilisation, %", lambda m: 100 * m["utilisation"], "{:.1f}"),
    ("Utilisation to last arrival, %", lambda m: 100 * m["utilisation_loaded"], "{:.1f}"),
    ("Idle on partly used nodes, %", lambda m: 100 * m["fragmentation"], "{:.1f}"),
    ("Idle while wanted, %", lambda m: 100 * m["blocked"], "{:.1f}"),
    ("Preemptions", lambda m: m["moves"]["preemptions"], "{:,.0f}"),
    ("Migrations", lambda m: m["moves"]["migrations"], "{:,.0f}"),
    ("Resizes", lambda m: m["moves"]["resizes"], "{:,.0f}"),
    ("Cost of moves, % of use", lambda m: 100 * m["moves"]["cost_share"], "{:.2f}"),
    ("Finish-time fairness p99", lambda m: m["fairness"]["finish_time"].get("p99"), "{:.2f}"),
    ("Jain's index of tenants", lambda m: m["fairness"]["jain_of_tenants"], "{:.3f}"),
)
"""What the table shows: a name, how to read it from the measures, how to write it."""

STYLE = """
:root { color-scheme: light dark; --line: light-dark(#dbe4e6, #24353b); }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem;
  background: light-dark(#fff, #131e22); color: light-dark(#10242b, #e6eff1); }
.wide { overflow-x: auto; } table { border-collapse: collapse; }
th, td { padding: .25rem .8rem; text-align: right; } tr { border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; }
.figure { height: 24rem; margin: 1.5rem 0; } .quiet { color: light-dark(#5b6570, #a3b6bc); }
"""

DRAW = """
const dark = matchMedia("(prefers-color-scheme: dark)");
function draw() {
  const line = dark.matches ? "#24353b" : "#dbe4e6";
  for (const [number, { data, layout }] of figures.entries()) {
    const axis = { gridcolor: line, linecolor: line, zerolinecolor: line };
    Plotly.react(`figure-${number}`, data, { ...layout,
      paper_bgcolor: "transparent", plot_bgcolor: "transparent",
      font: { color: dark.matches ? "#e6eff1" : "#10242b" },
      xaxis: { ...layout.xaxis, ...axis }, yaxis: { ...layout.yaxis, ...axis },
    }, { responsive: true, displaylogo: false });
  }
}
dark.addEventListener("change", draw);
draw();
"""


def report(runs: Sequence[Record], *, title: str = "Simulations compared") -> str:
    """The HTML of a comparison. It needs no network: Plotly's script is part of it."""
    from plotly.offline import get_plotlyjs

    drawn = figures(runs)
    places = "".join(f'<div class="figure" id="figure-{n}"></div>' for n in range(len(drawn)))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{STYLE}</style>"
        f"<script>{get_plotlyjs()}</script></head><body><h1>{html.escape(title)}</h1>"
        f"{_subject(runs)}{_table(runs)}{_promises(runs)}{_costs(runs)}{places}"
        f"<script>const figures = {_json(drawn)};{DRAW}</script></body></html>\n"
    )


def figures(runs: Sequence[Record]) -> list[Figure]:
    """Plotly figures that lay the runs over each other."""
    names = [str(run["name"]) for run in runs]
    return [
        _curves(runs, names, "completion_s", "Completion time", "hours", HOUR),
        _curves(runs, names, "wait_s", "Waiting time", "hours", HOUR),
        _over_time(runs, names, 2, "Devices in use"),
        _over_time(runs, names, 6, "Devices that waiting jobs want"),
        _by_group(runs, names, "by_size", "Mean completion by devices of the job"),
        _by_group(runs, names, "by_tenant", "Mean completion by tenant"),
    ]


def _hours(measures: Mapping[str, Any], name: str, part: str) -> float | None:
    value = measures[name].get(part)
    return None if value is None else float(value) / HOUR


def _json(value: object) -> str:
    return json.dumps(value).replace("</", "<\\/")


def _subject(runs: Sequence[Record]) -> str:
    said = sorted(
        {
            f"{run['measures']['trace']}, {run['measures']['jobs']:,} jobs,"
            f" on {run['measures']['fleet']['name']}"
            f" ({run['measures']['fleet']['devices']:,} devices)"
            for run in runs
        }
    )
    return "".join(f'<p class="quiet">{html.escape(each)}</p>' for each in said)


def _table(runs: Sequence[Record]) -> str:
    head = "".join(f"<th>{html.escape(str(run['name']))}</th>" for run in runs)
    body = ""
    for name, read, form in ROWS:
        cells = [read(run["measures"]) for run in runs]
        body += f"<tr><td>{name}</td>" + "".join(
            f"<td>{'' if cell is None else form.format(cell)}</td>" for cell in cells
        )
        body += "</tr>"
    table = f"<table><thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="wide">{table}</div>'


def _promises(runs: Sequence[Record]) -> str:
    lines = [
        f"<li>{html.escape(str(run['name']))}: {kept['share']:.1%} of {kept['jobs']:,}"
        f" {html.escape(tier)} jobs had at least {kept['promise']:.0%} of their GPUs</li>"
        for run in runs
        for tier, kept in run["measures"]["promises"].items()
    ]
    return f"<h2>Promises</h2><ul>{''.join(lines)}</ul>" if lines else ""


def _costs(runs: Sequence[Record]) -> str:
    """What moves were taken to cost, once for each way in which the runs differ."""
    told: dict[str, list[str]] = {}
    for run in runs:
        each = run["costs"]
        rate = f"{each['store_gb_s']:g} GB/s a node" if each["store_gb_s"] else "no time to carry"
        words = (
            f"{each['checkpoint_s']:g} s to checkpoint, {each['restore_s']:g} s to restore, {rate},"
            f" {each['image_gb_per_gpu']:g} GB a device where a job names no image"
        )
        told.setdefault(words, []).append(str(run["name"]))
    lines = [
        f"<li>{html.escape(words)}{'' if len(told) == 1 else ': ' + html.escape(', '.join(names))}"
        for words, names in told.items()
    ]
    return f"<h2>Moves cost</h2><ul>{'</li>'.join(lines)}</li></ul>"


def _layout(title: str, across: str, up: str, **more: object) -> dict[str, Any]:
    return {
        "title": {"text": title},
        "xaxis": {"title": {"text": across}, **more},
        "yaxis": {"title": {"text": up}, "rangemode": "tozero"},
        "legend": {"orientation": "h", "y": -0.2},
        "margin": {"t": 40},
    }


def _curves(
    runs: Sequence[Record], names: Sequence[str], key: str, title: str, unit: str, scale: float
) -> Figure:
    data = []
    for run, name in zip(runs, names, strict=True):
        values = [value / scale for value in run["curves"][key]]
        parts = [step / max(1, len(values) - 1) for step in range(len(values))]
        data.append({"x": values, "y": parts, "name": name, "mode": "lines"})
    return {"data": data, "layout": _layout(title, unit, "share of jobs", type="log")}


def _over_time(runs: Sequence[Record], names: Sequence[str], column: int, title: str) -> Figure:
    data = [
        {
            "x": [sample[0] / HOUR for sample in run["samples"]],
            "y": [sample[column] for sample in run["samples"]],
            "name": name,
            "mode": "lines",
            "line": {"shape": "hv", "width": 1},
        }
        for run, name in zip(runs, names, strict=True)
    ]
    return {"data": data, "layout": _layout(title, "hours", "devices")}


def _by_group(runs: Sequence[Record], names: Sequence[str], key: str, title: str) -> Figure:
    data = [
        {
            "type": "bar",
            "name": name,
            "x": list(run["measures"][key]),
            "y": [each["completion_s"]["mean"] / HOUR for each in run["measures"][key].values()],
        }
        for run, name in zip(runs, names, strict=True)
    ]
    return {"data": data, "layout": _layout(title, "", "hours", type="category")}
