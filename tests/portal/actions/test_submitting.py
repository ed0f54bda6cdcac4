"""What is refused at once, with the field and the remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents.protocol import Ability, DeviceInfo, Hello
from portal.actions.linking import hello
from portal.actions.output import append_output, read_output
from portal.actions.submitting import JobRequest, check_request, clone_request, submit_job
from portal.models import Job, Node, Tenant, User
from portal.refusals import Refused

ASKED: dict[str, Any] = {"tenant": "vision", "tier": "basic", "command": ["python", "train.py"]}


@pytest.fixture
def node(db: None) -> Node:
    row = Node.objects.create(name="n1", token_digest="x")
    devices = [DeviceInfo(id=f"d{index}", kind="cpu", index=index) for index in range(4)]
    able = {name: Ability(able=True) for name in ("run", "pause", "checkpoint", "migrate")}
    return hello(row.id, Hello(node="n1", cpus=8, memory=2**33, devices=devices, abilities=able))


WRONG = [
    ({"tenant": "language"}, "tenant", "You do not belong"),
    ({"tier": "gold"}, "tier", "basic"),
    ({"command": []}, "command", "python train.py"),
    ({"command": ["a\0b"]}, "command", "NUL"),
    ({"environment": {"1BAD": "x"}}, "environment", "letters"),
    ({"secrets": {"OK": "x" * 70_000}}, "secrets", "64 KiB"),
    ({"git": "file:///etc"}, "git", "https://"),
    ({"ref": "--upload-pack=x", "git": "https://a/b"}, "ref", "branch"),
    ({"replicas": 0}, "replicas", "Between 1"),
    ({"gpus_per_replica": 0}, "gpus_per_replica", "cpu device"),
    ({"replicas": 2, "fewest_devices": 3}, "fewest_devices", "full size, 2"),
    ({"cpus_per_replica": -1}, "cpus_per_replica", "Between"),
    ({"cpus_per_replica": 64}, "cpus_per_replica", "8 CPUs"),
    ({"memory_per_replica": 1}, "memory_per_replica", "16 MiB"),
    ({"memory_per_replica": 2**40}, "memory_per_replica", "8.0 GiB"),
    ({"device_kind": "H100"}, "device_kind", "There is: cpu"),
    ({"gpus_per_replica": 5}, "gpus_per_replica", "4 such devices"),
    ({"replicas": 6}, "replicas", "has 4"),
    ({"replicas": 9}, "gpus_per_replica", "may use 8"),
    ({"partition": "fast"}, "partition", "leave it empty"),
    ({"tags": [""]}, "tags", "20 tags"),
    ({"expected_s": 0.0}, "expected_s", "Between"),
    ({"checkpoint_every_s": 3}, "checkpoint_every_s", "10 s"),
]


@pytest.mark.parametrize(("change", "field", "remedy"), WRONG)
def test_refused_with_field_and_remedy(
    alice: User, language: Tenant, node: Node, change: dict[str, Any], field: str, remedy: str
) -> None:
    with pytest.raises(Refused) as refused:
        submit_job(alice, JobRequest(**{**ASKED, **change}))
    assert remedy in refused.value.fields[field]
    assert not Job.objects.exists()


def test_the_preview_tells_verdict_and_quota(alice: User, node: Node) -> None:
    preview = check_request(alice, JobRequest(**ASKED))
    assert (preview.verdict.remedy, preview.devices, preview.quota_left) == ("transparent", 1, 8)
    preview = check_request(alice, JobRequest(**{**ASKED, "replicas": 2}))
    assert preview.verdict.remedy == "pause"
    assert "network" in preview.verdict.reason


def test_a_clone_has_the_secrets_only_for_their_owner(alice: User, bob: User, node: Node) -> None:
    job = submit_job(alice, JobRequest(**ASKED, secrets={"KEY": "s3cret"}, tags=["a"]))
    assert clone_request(alice, job).secrets == {"KEY": "s3cret"}
    copy = submit_job(bob, clone_request(bob, job))
    assert (copy.secrets, copy.tags, copy.cloned_from) == ({}, ["a"], job)


def test_what_a_forgotten_job_of_the_same_number_has_printed_is_not_shown(
    alice: User, node: Node, settings: Any, tmp_path: Path
) -> None:
    """Rows from a backup do not know the jobs that came after it; what those printed is there."""
    settings.OUTPUT = tmp_path
    asked = JobRequest(**ASKED)
    number = submit_job(alice, asked).id + 1
    append_output(number, 0, 0, b"of another tenant")
    assert submit_job(alice, asked).id == number
    assert read_output(number, 0) == b""
