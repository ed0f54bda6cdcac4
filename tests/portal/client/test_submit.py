"""Submitting from the command line."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import pytest

from portal.actions.output import append_output
from portal.choices import JobState
from portal.client import output
from portal.models import Job, Upload
from tests.portal.client.conftest import Tidepool, told

pytestmark = pytest.mark.usefixtures("tiers")


def test_a_folder_is_packed_and_submitted(tidepool: Tidepool) -> None:
    Path("work").mkdir()
    Path("work/train.py").write_text("print(1)\n")
    Path("work/data.bin").write_bytes(b"0" * 100)
    Path("work/.tidepoolignore").write_text("*.bin\n")

    job = told(
        tidepool(
            *("submit", "--tenant", "vision", "--tier", "basic", "--replicas", "2"),
            *("--dir", "work", "--env", "EPOCHS=3", "--tag", "night", "--expected", "2h"),
            *("--memory", "1GiB", "--json", "--", "python", "train.py", "--fast"),
        )
    )

    assert job["command"] == ["python", "train.py", "--fast"]
    assert job["replicas"] == 2
    assert job["environment"] == {"EPOCHS": "3"}
    assert job["expected_s"] == 7200
    assert job["memory_per_replica"] == 2**30
    assert job["tags"] == ["night"]
    upload = Upload.objects.get(id=job["source"]["upload"])
    assert upload.filename == "work.tar.gz"
    with upload.file.open("rb") as kept, tarfile.open(fileobj=kept) as archive:
        assert sorted(archive.getnames()) == [".tidepoolignore", "train.py"]


def test_the_only_tenant_need_not_be_named(tidepool: Tidepool) -> None:
    assert told(tidepool("submit", "--json", "true"))["tenant"] == "vision"


def test_a_file_is_submitted_as_it_is(tidepool: Tidepool) -> None:
    Path("train.py").write_text("print(1)\n")
    job = told(tidepool("submit", "--file", "train.py", "--json", "--", "python", "train.py"))
    assert job["source"]["filename"] == "train.py"


def test_a_secret_is_taken_from_the_environment(
    tidepool: Tidepool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY", "hush")
    done = tidepool("submit", "--secret", "KEY", "--json", "true")
    assert told(done)["secrets"] == ["KEY"]
    assert "hush" not in done.output
    assert Job.objects.get().secrets == {"KEY": "hush"}


def test_a_sweep_submits_a_job_for_each_combination(tidepool: Tidepool) -> None:
    Path("train.py").write_text("print(1)\n")
    axes = ("--sweep", "RATE=0.1,0.01", "--sweep", "SEED=1,2,3")
    words = ("--file", "train.py", "--env", "EPOCHS=3", "--json", "--", "python", "train.py")
    jobs = told(tidepool("submit", "--name", "tune", *axes, *words))
    assert [job["name"] for job in jobs[:2]] == ["tune RATE=0.1 SEED=1", "tune RATE=0.1 SEED=2"]
    last = Job.objects.get(id=jobs[-1]["id"])
    assert last.environment == {"EPOCHS": "3", "RATE": "0.01", "SEED": "3"}
    assert Job.objects.count() == 6 and Upload.objects.count() == 1
    wrong = tidepool("submit", "--sweep", "RATE", "true")
    assert wrong.exit_code and "is not NAME=a,b,c" in wrong.output


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--tier", "gold"), "tier: "),
        (("--tenant", "language"), "tenant: "),
        (("--replicas", "0"), "replicas: "),
        (("--git", "file:///etc"), "git: "),
    ],
)
def test_a_refusal_names_the_field(words: tuple[str, ...], says: str, tidepool: Tidepool) -> None:
    done = tidepool("submit", *words, "true")
    assert done.exit_code == 1
    assert says in done.stderr
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--dir", "nowhere"), "nowhere"),
        (("--dir", "."), "nothing to send"),
        (("--file", "nowhere"), "nowhere"),
        (("--env", "NOT_THERE_AT_ALL"), "NOT_THERE_AT_ALL"),
        (("--memory", "much"), "512MiB"),
        (("--expected", "long"), "10m"),
        (("--dir", ".", "--git", "https://example.org/x"), "one of"),
    ],
)
def test_a_mistake_is_said_before_anything_is_sent(
    words: tuple[str, ...], says: str, tidepool: Tidepool
) -> None:
    done = tidepool("submit", *words, "true")
    assert done.exit_code == 2
    assert says in done.stderr


def test_an_oversize_folder_is_answered_with_the_remedy(tidepool: Tidepool, settings: Any) -> None:
    settings.UPLOAD_LIMIT = 10
    Path("train.py").write_text("print(1)\n")
    done = tidepool("submit", "--dir", ".", "true")
    assert done.exit_code == 1
    assert ".tidepoolignore" in done.stderr


def test_check_submits_nothing(tidepool: Tidepool) -> None:
    assert told(tidepool("submit", "--check", "true"))["devices"] == 1
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("state", "code", "status"), [("succeeded", 0, 0), ("failed", 3, 3), ("cancelled", None, 1)]
)
def test_follow_shows_the_output_and_ends_as_the_job_does(
    state: str,
    code: int | None,
    status: int,
    tidepool: Tidepool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = []

    def later(seconds: float) -> None:
        """The job prints at the first look, and has ended at the second."""
        looks.append(seconds)
        job = Job.objects.get()
        if len(looks) == 1:
            append_output(job.id, 0, 0, b"step 1\n")
        if len(looks) == 2:
            append_output(job.id, 0, 7, b"done\n")
            Job.objects.update(state=JobState(state), exit_code=code)

    monkeypatch.setattr(output.time, "sleep", later)

    done = tidepool("submit", "--follow", "true")

    assert done.stdout == "step 1\ndone\n"
    assert done.exit_code == status
