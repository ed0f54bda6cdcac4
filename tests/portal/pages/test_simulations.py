"""What if: asked by admins, watched, compared, shared by its address."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from portal.comparing import MORE_IS_BETTER
from portal.models import Node, Simulation, Tenant, User
from scheduler.simulator.report import ROWS
from tests.portal.pages.conftest import Browser
from tests.portal.pages.test_queries import count


@pytest.fixture(autouse=True)
def nobody_plays(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path
    monkeypatch.setattr("portal.actions.simulations.send_for_worker", lambda: None)


def make(root: User, **fields: Any) -> Simulation:
    told = {"title": "more nodes", "days": 7, "state": "done", "runs": ["as it is", "changed"]}
    table = [["Jobs finished", "1,000", "1,100"], ["Wait p99, h", None, "2.00"],
             ["Idle while wanted, %", "0.3", "0.9"]]  # fmt: skip
    return Simulation.objects.create(owner=root, **{**told, "table": table, **fields})


def test_a_question_is_asked_and_leads_to_its_page(
    browser: Browser, node: Node, vision: Tenant, root: User
) -> None:
    client = browser(root)
    values = {"days": "7", "policy": "fifo", "tenant": "vision", "reserved": "4", "borrow": "",
              "more_nodes": "2", "like_node": "node-a"}  # fmt: skip
    answer = client.post("/what-if/", values)
    asked = Simulation.objects.get()
    assert answer["Location"] == f"/what-if/{asked.id}/"
    assert (asked.days, asked.policy, asked.more_nodes, asked.like_node) == (7, "fifo", 2, "node-a")
    assert asked.quota["borrow"] is None
    page = client.get(answer["Location"]).content.decode()
    for words in ("policy fifo, 4 reserved for vision, 2 more like node-a", "Queued", "<progress",
                  "borrows without limit", "Cancel"):  # fmt: skip
        assert words in page, words


def test_a_file_is_played_instead_of_the_last_days(
    browser: Browser, node: Node, root: User
) -> None:
    file = SimpleUploadedFile("mine.csv", b"submit_time,duration,gpus\n0,1,1\n")
    browser(root).post("/what-if/", {"days": "7", "trace": file})
    asked = Simulation.objects.get()
    assert (asked.days, asked.filename) == (None, "mine.csv")
    with asked.trace.open() as kept:
        assert kept.read().startswith(b"submit_time")


def test_what_is_wrong_stands_at_its_field(browser: Browser, node: Node, root: User) -> None:
    for values, field in (
        ({"days": ""}, "trace"),
        ({"days": "7", "more_nodes": "2"}, "like_node"),
        ({"days": "7", "policy": "best"}, "policy"),
    ):
        answer = browser(root).post("/what-if/", values)
        assert answer.status_code == 422
        assert answer.context["form"].errors[field]
    assert not Simulation.objects.exists()


def test_only_what_differs_of_a_tier_is_asked(
    browser: Browser, node: Node, vision: Tenant, root: User
) -> None:
    client = browser(root)
    page = client.get("/what-if/").content.decode()
    assert 'name="premium.promise" value="95"' in page
    values = {"days": "7", "premium.promise": "95", "premium.rank": "30",
              "premium.preemptible": "on", "basic.promise": "40", "basic.rank": "10"}  # fmt: skip
    answer = client.post("/what-if/", values)
    asked = Simulation.objects.get()
    assert asked.tiers == {"basic": {"promise": 0.4, "preemptible": False}}
    page = client.get(answer["Location"]).content.decode()
    assert "Tier basic promises 40 % and never preempted" in page
    again = client.get(f"/what-if/?again={asked.id}").content.decode()
    assert 'name="basic.promise" value="40"' in again
    assert '<details class="tried" open>' in again
    wrong = client.post("/what-if/", values | {"basic.promise": "140"})
    assert wrong.status_code == 422
    assert '<details class="tried" open>' in wrong.content.decode()


def test_costs_and_broken_lines_are_shown(browser: Browser, root: User) -> None:
    costs = {"checkpoint_s": 0.9, "restore_s": 1.25, "store_gb_s": 0.25, "image_gb_per_gpu": 0.3,
             "squeeze": 0.03, "moves": 37}  # fmt: skip
    done = make(root, costs=costs, broken=["line 5: gpus is empty", "line 9: <b>"])
    page = browser(root).get(f"/what-if/{done.id}/").content.decode()
    for words in ("learned from 37 moves", "0.25 GB/s a node", "line 5: gpus is empty", "&lt;b&gt;",
                  "Nothing: the fleet as it is"):  # fmt: skip
        assert words in page, words


def test_one_that_has_ended_is_removed(browser: Browser, root: User, alice: User) -> None:
    done, running = make(root), make(root, state="running")
    assert browser(alice).post(f"/what-if/{done.id}/remove/").status_code == 403
    client = browser(root)
    assert client.post(f"/what-if/{done.id}/remove/")["Location"] == "/what-if/"
    assert client.post(f"/what-if/{running.id}/remove/")["Location"] == f"/what-if/{running.id}/"
    assert "cancel it first" in client.get(f"/what-if/{running.id}/").content.decode()
    assert list(Simulation.objects.all()) == [running]


def test_two_runs_are_compared(browser: Browser, root: User) -> None:
    figures = [{"data": [], "layout": {"title": {"text": "Waiting time"}}}]
    done = make(root, figures=figures, detail="12 jobs.")
    page = browser(root).get(f"/what-if/{done.id}/").content.decode()
    for words in (
        "As it is",
        "Changed",
        "1,100",
        "+10.0 %",
        "—",
        "+0.6 points",
        "12 jobs.",
        "Done",
    ):
        assert words in page, words
    assert "<progress" not in page
    assert browser(root).get(f"/what-if/{done.id}/charts/").json() == {"figures": figures}


def test_any_number_of_runs_stand_side_by_side(browser: Browser, root: User) -> None:
    figure = {"layout": {"title": {"text": "Waiting time"}}}
    lines = [{"x": [1], "y": [1], "name": "as it is"}, {"x": [2], "y": [1], "name": "changed"}]
    plain = make(root, figures=[{"data": lines, **figure}])
    table = [["Jobs finished", "1,000", "900"], ["Wait p99, h", None, "1.50"],
             ["Idle while wanted, %", "0.3", "0.1"]]  # fmt: skip
    other = make(root, title="fifo", table=table, figures=[{"data": lines, **figure}])
    alone = make(root, title="=cmd", filename="mine.csv", days=None, runs=["as it is"],
                 table=[["Jobs finished", "7"]])  # fmt: skip
    client = browser(root)
    answer = client.get(f"/what-if/compare/?of={plain.id}&of={other.id}")
    words = f"{plain.id}.0,{plain.id}.1,{other.id}.1"
    assert answer["Location"] == f"/what-if/compare/?runs={words}"
    compared = client.get(answer["Location"]).context["compared"]
    assert [run.name for run in compared.runs] == ["As it is", "more nodes", "fifo"]
    finished, wait, idle = (line.cells for line in compared.lines)
    assert [cell.change for cell in finished] == ["", "+10.0 %", "-10.0 %"]
    assert [cell.better for cell in finished] == [None, True, False]
    assert [cell.best for cell in finished] == [False, True, False]
    assert [cell.best for cell in wait] == [False, False, True]
    assert [cell.change for cell in idle] == ["", "+0.6 points", "-0.2 points"]
    assert "different numbers of jobs" in compared.doubt
    charts = client.get(f"/what-if/compare/charts/?runs={words}").json()["figures"]
    assert [line["name"] for line in charts[0]["data"]] == ["As it is", "more nodes", "fifo"]
    table_ = client.get(f"/what-if/compare/table.csv?runs={words},{alone.id}.0").content.decode()
    assert table_.splitlines()[:2] == [
        "measure,As it is,more nodes,fifo,'=cmd", "Jobs finished,1000.0,1100.0,900.0,7.0",
    ]  # fmt: skip


def test_what_cannot_be_compared_is_said(browser: Browser, root: User, alice: User) -> None:
    client = browser(root)
    assert "No simulation is done" in client.get("/what-if/compare/").content.decode()
    waiting = make(root, state="queued", table=[], runs=[])
    assert client.get(f"/what-if/compare/?runs={waiting.id}").context["compared"].runs == []
    done = make(root)
    for words in ("999", f"{done.id}.2", "x", "1.2.3"):
        assert client.get(f"/what-if/compare/?runs={words}").status_code == 404, words
    for page in ("", "charts/", "table.csv"):
        address = f"/what-if/compare/{page}?runs={done.id}"
        assert browser(alice).get(address).status_code == 403
        assert client.get(address).status_code == 200


def test_every_measure_that_is_judged_is_one_that_is_shown() -> None:
    assert set(MORE_IS_BETTER) <= {name for name, _, _ in ROWS}


def test_one_is_cancelled(browser: Browser, root: User) -> None:
    running = make(root, state="running", table=[], share=0.4)
    client = browser(root)
    assert b"40 %" in client.get(f"/what-if/{running.id}/panel/").content
    client.post(f"/what-if/{running.id}/cancel/")
    running.refresh_from_db()
    assert running.state == "cancelled"
    assert running.ended_at is not None


def test_only_admins_ask(browser: Browser, alice: User, root: User) -> None:
    done = make(root)
    for address in ("/what-if/", f"/what-if/{done.id}/", f"/what-if/{done.id}/charts/"):
        assert browser(alice).get(address).status_code == 403
        assert browser(root).get(address).status_code == 200
    assert "/what-if/" not in browser(alice).get("/").content.decode()
    assert browser(root).get("/what-if/999/").status_code == 404


def test_the_pages_ask_a_fixed_number_of_times(
    browser: Browser, node: Node, vision: Tenant, root: User
) -> None:
    done = make(root)
    client = browser(root)
    compared = f"/what-if/compare/?runs={done.id}"
    addresses = {"/what-if/": 9, f"/what-if/{done.id}/": 3, compared: 4}
    client.get("/what-if/")
    first = {address: count(client, address) for address in addresses}
    for _ in range(3):
        make(root)
    assert {address: count(client, address) for address in addresses} == first
    assert all(first[address] <= most for address, most in addresses.items())
