"""What if, played out, from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from portal.models import Simulation, Tenant, User
from tests.portal.client.conftest import Tidepool, told


@pytest.fixture(autouse=True)
def nobody_plays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("portal.actions.simulations.send_for_worker", lambda: None)


@pytest.fixture
def as_admin(tidepool: Tidepool, alice: User) -> Tidepool:
    User.objects.filter(id=alice.id).update(is_staff=True)
    return tidepool


def test_a_question_is_asked_listed_called_off_and_removed(
    as_admin: Tidepool, vision: Tenant
) -> None:
    quota = "tenant=vision,reserved=4,borrow=unlimited"
    words = ("--days", "14", "--policy", "fifo", "--quota", quota,
             "--tier", "basic:promise=0.4,preemptible=no")  # fmt: skip
    asked = told(as_admin("simulations", "ask", *words, "--json"))
    row = Simulation.objects.get()
    assert (row.id, row.days, row.policy) == (asked["id"], 14, "fifo")
    assert (row.quota["reserved"], row.quota["borrow"]) == (4, None)
    assert row.tiers == {"basic": {"promise": 0.4, "preemptible": False}}
    assert "the last 14 days" in as_admin("simulations").stdout
    assert "cancelled" in as_admin("simulations", "cancel", str(row.id)).stdout
    assert "is removed" in as_admin("simulations", "remove", str(row.id)).stdout
    assert "Nothing was asked yet" in as_admin("simulations", "list").stdout


def test_a_trace_is_sent(as_admin: Tidepool, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("submit_time,duration,gpus\n0,100,1\n")
    assert told(as_admin("simulations", "ask", str(path), "--json"))["filename"] == "mine.csv"


def test_what_it_showed_is_a_table(as_admin: Tidepool, alice: User) -> None:
    times = {"mean": 7200.0, "p99": 9000.0}
    measures = {
        "finished": 10, "jobs": 12, "completion_s": times, "wait_s": times, "makespan_s": 36000.0,
        "utilisation": 0.5, "fragmentation": 0.1,
        "moves": {"preemptions": 1, "migrations": 2, "resizes": 0},
    }  # fmt: skip
    row = Simulation.objects.create(
        owner=alice, title="more nodes", days=7, state="done", share=1.0, runs=["as it is"],
        measures=[measures], costs={"moves": 37}, broken=["line 5: gpus is empty"],
    )  # fmt: skip
    shown = as_admin("simulations", "show", str(row.id)).stdout
    for words in ("learned from 37 moves", "line 5", "as it is", "mean completion, h", "2"):
        assert words in shown, words


def test_options_that_cannot_be_read_are_refused(as_admin: Tidepool) -> None:
    for words in (
        ("--tier", "basic"),
        ("--tier", "basic:colour=red"),
        ("--tier", "basic:rank=high"),
        ("--quota", "reserved=4"),
        ("--quota", "tenant=vision,reserved=four"),
        ("--quota", "tenant=vision,colour=red,reserved=1"),
        ("--quota", "vision"),
    ):
        assert as_admin("simulations", "ask", *words).exit_code == 2, words


def test_it_is_for_admins(tidepool: Tidepool) -> None:
    assert "admin" in tidepool("simulations", "ask").stderr


def test_runs_are_compared(as_admin: Tidepool, alice: User) -> None:
    for title, finished in (("more nodes", "12"), ("fifo", "8")):
        Simulation.objects.create(
            owner=alice, title=title, days=7, state="done", runs=["as it is", "changed"],
            table=[["Jobs finished", "10", finished]],
        )  # fmt: skip
    ids = [str(id) for id in Simulation.objects.order_by("id").values_list("id", flat=True)]
    shown = as_admin("simulations", "compare", *ids).stdout
    for words in ("As it is", "more nodes", "fifo", "12* (+20.0 %)", "8 (-20.0 %)"):
        assert words in shown, words
    lines = as_admin("simulations", "compare", *ids, "--csv").stdout.splitlines()
    assert lines == ["measure,As it is,more nodes,fifo", "Jobs finished,10.0,12.0,8.0"]
    answer = told(as_admin("simulations", "compare", f"{ids[1]}.1", ids[0], "--json"))
    assert [run["name"] for run in answer["runs"]] == ["fifo", "As it is", "more nodes"]
