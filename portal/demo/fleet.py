"""The little of the public API that the story needs."""

from __future__ import annotations

import io
import re
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

STEP = re.compile(r"^step (\d+) .* at (\d+\.\d+)$", re.MULTILINE)
WEIGHTS = re.compile(r"^weights sha256 ([0-9a-f]{64})$", re.MULTILINE)
ENDED = {"succeeded", "failed", "cancelled"}
PATIENCE_S = 180.0
LOOK_S = 0.1


class NotSoError(Exception):
    """Something in the story did not come about; the sentence says what."""


class Fleet:
    """One user's view of the product."""

    def __init__(self, address: str, token: str, tenant: str) -> None:
        self.tenant = tenant
        self.http = httpx.Client(
            base_url=f"{address.rstrip('/')}/api/v1/",
            headers={"Authorization": f"Bearer {token}"},
            timeout=60,
        )

    def close(self) -> None:
        self.http.close()

    def submit(self, folder: Path, **fields: Any) -> int:
        """Submit a job with a folder's files and answer its id."""
        files = {"file": (f"{folder.name}.tar.gz", pack(folder), "application/gzip")}
        answer = self._good(self.http.post("jobs/", data=fields, files=files))
        return int(answer["id"])

    def job(self, id: int) -> dict[str, Any]:
        return dict(self._good(self.http.get(f"jobs/{id}/")))

    def migrate(self, id: int) -> None:
        """Ask for a move to anywhere else."""
        self._good(self.http.post(f"jobs/{id}/migrate/", json={}))

    def cancel(self, id: int) -> None:
        self._good(self.http.post(f"jobs/{id}/cancel/"))

    def live(self) -> list[int]:
        """Answer the jobs of this user that have not ended."""
        return [int(job["id"]) for job in self._pages("jobs/?state=live&owner=me")]

    def receipts(self, id: int) -> list[dict[str, Any]]:
        """Answer what interrupted a job, oldest first."""
        return sorted(self._pages(f"jobs/{id}/receipts/"), key=lambda receipt: receipt["id"])

    def placements(self, id: int) -> list[dict[str, Any]]:
        """Answer where a job ran, in order."""
        return sorted(self._pages(f"jobs/{id}/placements/"), key=lambda placed: placed["epoch"])

    def output(self, id: int, rank: int = 0) -> str:
        most = {"limit": 4 * 1024 * 1024}
        response = self.http.get(f"jobs/{id}/output/{rank}/", params=most)
        response.raise_for_status()
        return response.text

    def steps(self, id: int) -> list[int]:
        """Answer the numbers of the steps that its output tells of, in order."""
        return [int(number) for number, _ in STEP.findall(self.output(id))]

    def wait(self, what: str, condition: Callable[[], Any], every_s: float = LOOK_S) -> Any:
        """Ask until the answer is true and give it back. Raises ``NotSoError``."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            if answer := condition():
                return answer
            time.sleep(every_s)
        raise NotSoError(f"Waited {PATIENCE_S:.0f} s in vain for {what}.")

    def wait_for_step(self, id: int, step: int) -> None:
        self.wait(f"job {id} to reach step {step}", lambda: len(self.steps(id)) >= step)

    def wait_for_end(self, id: int) -> dict[str, Any]:
        """Answer the job once it has succeeded. Raises ``NotSoError`` when it ended otherwise."""

        def ended() -> dict[str, Any] | None:
            job = self.job(id)
            return job if job["state"] in ENDED else None

        job: dict[str, Any] = self.wait(f"job {id} to end", ended)
        if job["state"] != "succeeded":
            raise NotSoError(f"Job {id} {job['state']}: {job['detail'] or job['sentence']}")
        return job

    def weights(self, id: int) -> str:
        """Answer the fingerprint that its last line tells."""

        def told() -> str:
            found = WEIGHTS.search(self.output(id))
            return found[1] if found else ""

        return str(self.wait(f"job {id} to tell its weights", told))

    def _pages(self, address: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        page = 1
        while page:
            separator = "&" if "?" in address else "?"
            answer = self._good(self.http.get(f"{address}{separator}page_size=200&page={page}"))
            found += answer["results"]
            page = page + 1 if answer["next"] else 0
        return found

    def _good(self, response: httpx.Response) -> Any:
        if response.is_error:
            try:
                sentence = response.json()["detail"]
            except (ValueError, KeyError):
                sentence = response.text[:200]
            raise NotSoError(f"{response.request.url.path}: {response.status_code} {sentence}")
        return response.json()


def pack(folder: Path) -> bytes:
    """Answer a folder's files as a compressed archive."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for path in sorted(folder.iterdir()):
            if path.is_file():
                archive.add(path, arcname=path.name)
    return buffer.getvalue()
