"""Jobs, nodes, tenants and files from the command line."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from agents.checkpoints import open_store, store_tree
from portal.actions.output import append_output
from portal.models import Job, Membership, Move, Node, PlacedReplica, Tenant, User
from tests.portal.api.conftest import job, make_job, node, place  # noqa: F401 - fixtures
from tests.portal.client.conftest import Tidepool, told


def test_jobs_are_listed_for_people_and_programs(tidepool: Tidepool, job: Job) -> None:  # noqa: F811
    assert "train" in tidepool("jobs").stdout
    rows = told(tidepool("jobs", "list", "--state", "live", "--tag", "night", "--json"))
    assert [row["id"] for row in rows] == [job.id]
    assert told(tidepool("jobs", "list", "--search", "other", "--json")) == []


def test_a_list_goes_over_pages(tidepool: Tidepool, make_job: Any) -> None:  # noqa: F811
    for number in range(4):
        make_job(str(number))
    assert len(told(tidepool("jobs", "list", "--limit", "3", "--json"))) == 3
    assert len(told(tidepool("jobs", "list", "--json"))) == 4


def test_a_job_is_shown(tidepool: Tidepool, job: Job) -> None:  # noqa: F811
    Job.objects.update(sentence="Waits for 1 device.")
    shown = tidepool("show", str(job.id))
    assert "Waits for 1 device." in shown.stdout
    assert told(tidepool("show", str(job.id), "--json"))["secrets"] == ["TOKEN"]


def test_a_stranger_sees_nothing(tidepool: Tidepool, job: Job, language: Tenant) -> None:  # noqa: F811
    Job.objects.update(tenant=language)
    done = tidepool("show", str(job.id))
    assert done.exit_code == 1
    assert "no job" in done.stderr


def test_a_job_is_paused_resumed_cloned_and_cancelled(tidepool: Tidepool, job: Job) -> None:  # noqa: F811
    states = [
        told(tidepool(verb, str(job.id), "--json"))["state"]
        for verb in ("pause", "resume", "cancel")
    ]
    assert states == ["paused", "waiting", "cancelled"]
    again = told(tidepool("clone", str(job.id), "--name", "again", "-e", "A=1", "--json"))
    assert (again["name"], again["environment"]) == ("again", {"A": "1"})


@pytest.mark.parametrize(
    "words", [("migrate", "{}"), ("migrate", "{}", "--to", "x"), ("checkpoint", "{}")]
)
def test_what_the_state_forbids_is_said(
    words: tuple[str, ...],
    tidepool: Tidepool,
    job: Job,  # noqa: F811
) -> None:
    done = tidepool(*(word.format(job.id) for word in words))
    assert done.exit_code == 1
    assert done.stderr.startswith("Error: ")


def test_a_resize_names_the_field(tidepool: Tidepool, job: Job) -> None:  # noqa: F811
    assert "devices: " in tidepool("resize", str(job.id), "7").stderr


def test_receipts_tell_what_each_interruption_cost(tidepool: Tidepool, job: Job) -> None:  # noqa: F811
    Move.objects.create(
        job=job,
        kind="migrate",
        began_at=timezone.now(),
        from_nodes=["node-a"],
        to_nodes=["node-b"],
        stopped_at=100.0,
        resumed_at=101.5,
        bytes_stored=2**21,
        sentence="Asked by alice.",
    )
    shown = tidepool("receipts", str(job.id)).stdout
    for word in ("node-a", "node-b", "1.5s", "2.0 MiB", "Asked by alice."):
        assert word in shown


def test_logs_are_printed_as_they_are(tidepool: Tidepool, job: Job) -> None:  # noqa: F811
    append_output(job.id, 0, 0, "é\n\x1b[1mbold\n".encode())
    assert tidepool("logs", str(job.id)).stdout_bytes == "é\n\x1b[1mbold\n".encode()
    assert tidepool("logs", str(job.id), "--tail", "5").stdout == "bold\n"


def test_files_are_listed_and_downloaded(
    tidepool: Tidepool,
    job: Job,  # noqa: F811
    node: Node,  # noqa: F811
    settings: Any,
    tmp_path: Path,
) -> None:
    (tmp_path / "left/out").mkdir(parents=True)
    (tmp_path / "left/out/a b.txt").write_text("done\n")
    place(job, node, state="ended")
    key = store_tree(open_store(settings.STORE), tmp_path / "left").manifest_key
    PlacedReplica.objects.update(outputs=key)

    assert "out/a b.txt" in tidepool("files", str(job.id)).stdout
    assert tidepool("download", str(job.id), "out/a b.txt").exit_code == 0
    assert Path("a b.txt").read_text() == "done\n"
    assert tidepool("download", str(job.id)).exit_code == 0
    with zipfile.ZipFile(f"job-{job.id}-rank-0.zip") as archive:
        assert archive.namelist() == ["out/a b.txt"]
    missing = tidepool("download", str(job.id), "nothing")
    assert missing.exit_code == 1
    assert not list(Path.cwd().glob(".*.part"))


def test_the_fleet_is_shown(tidepool: Tidepool, job: Job, node: Node) -> None:  # noqa: F811
    place(job, node)
    assert "node-a" in tidepool("nodes").stdout
    assert "migrate" in tidepool("nodes", "show", "node-a").stdout
    assert told(tidepool("fleet", "--json"))["kinds"][0]["taken"] == 1
    assert "cpu" in tidepool("fleet").stdout


def test_nodes_are_changed_by_admins_only(tidepool: Tidepool, alice: User, node: Node) -> None:  # noqa: F811
    refused = tidepool("nodes", "drain", "node-a")
    assert refused.exit_code == 1
    assert "admin" in refused.stderr
    User.objects.update(is_staff=True)
    states = [
        told(tidepool("nodes", verb, "node-a", "--json"))["state"]
        for verb in ("cordon", "drain", "uncordon")
    ]
    assert states == ["cordoned", "draining", "ready"]
    assert tidepool("nodes", "add", "node-z").stdout.startswith("tn_")
    assert tidepool("nodes", "token", "node-z").stdout.startswith("tn_")
    assert tidepool("nodes", "remove", "node-z").exit_code == 0


def test_tenants_tiers_and_members(
    tidepool: Tidepool, alice: User, charlie: User, vision: Tenant
) -> None:
    assert "vision" in tidepool("tenants").stdout
    assert "premium" in tidepool("tiers").stdout
    Membership.objects.filter(user=alice).update(role="manager")
    assert told(tidepool("tenants", "member", "vision", "charlie", "--json"))["username"]
    assert "charlie" in tidepool("tenants", "members", "vision").stdout
    assert tidepool("tenants", "dismiss", "vision", "charlie").exit_code == 0
    User.objects.update(is_staff=True)
    words = ("tenants", "quota", "vision", "--reserved", "3", "--borrow", "unlimited", "--json")
    assert told(tidepool(*words))["borrow"] is None
    assert tidepool("tenants", "quota", "vision", "--reserved", "3", "--borrow", "x").exit_code == 2
    assert told(tidepool("tenants", "add", "speech", "--json"))["slug"] == "speech"
