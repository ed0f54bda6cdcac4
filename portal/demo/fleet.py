"""The little of the public API that the story needs."""

from __future__ import annotations

import contextlib
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
WORD_S = 10.0
"""A wait says so often what it waits for."""


class NotSoError(Exception):
    """Something in the story did not come about; the sentence says what."""


class NotNowError(NotSoError):
    """What was asked for does not go with where the job stands now."""


class Fleet:
    """One user's view of the product. ``say`` is told what a long wait waits for."""

    def __init__(
        self,
        address: str,
        token: str,
        tenant: str,
        *,
        say: Callable[[str], None] = lambda sentence: None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.tenant = tenant
        self.address = address.rstrip("/")
        self.say = say
        self.submitted: list[int] = []
        self.http = httpx.Client(
            base_url=f"{self.address}/api/v1/",
            headers={"Authorization": f"Bearer {token}"},
            timeout=60,
            transport=transport,
        )

    def close(self) -> None:
        self.http.close()

    def submit(self, folder: Path, **fields: Any) -> int:
        """Submit a job with a folder's files and answer its id."""
        files = {"file": (f"{folder.name}.tar.gz", pack(folder), "application/gzip")}
        answer = self._good(self.http.post("jobs/", data=fields, files=files))
        self.submitted.append(int(answer["id"]))
        return self.submitted[-1]

    def nodes(self) -> list[dict[str, Any]]:
        """Answer every node with its devices and who holds them."""
        return self._pages("nodes/")

    def job(self, id: int) -> dict[str, Any]:
        return dict(self._good(self.http.get(f"jobs/{id}/")))

    def migrate(self, id: int) -> None:
        """Ask for a move to anywhere else."""
        self._good(self.http.post(f"jobs/{id}/migrate/", json={}))

    def cancel(self, id: int) -> None:
        self._good(self.http.post(f"jobs/{id}/cancel/"))

    def cancel_submitted(self) -> list[int]:
        """Cancel what was submitted by this view and has not ended; return these jobs."""
        live = [job for job in self.live() if job in self.submitted] if self.submitted else []
        for job in live:
            with contextlib.suppress(NotNowError):  # it ended meanwhile
                self.cancel(job)
        return live

    def live(self) -> list[int]:
        """Answer the jobs of this user that have not ended."""
        return [int(job["id"]) for job in self.jobs("state=live&owner=me")]

    def jobs(self, query: str) -> list[dict[str, Any]]:
        """Answer the jobs that a query finds, of those that this user may see."""
        return self._pages(f"jobs/?{query}")

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

    def wait(
        self,
        what: str,
        condition: Callable[[], Any],
        every_s: float = LOOK_S,
        *,
        within_s: float = PATIENCE_S,
        first_word_s: float = WORD_S,
        why: Callable[[], str] = lambda: "",
    ) -> Any:
        """Ask until the answer is true and give it back. Raises ``NotSoError``.

        A portal that does not answer for a while is waited for too. ``why`` says what is in the
        way.
        """
        began = time.monotonic()
        word_at = began + first_word_s
        reason = ""
        while (now := time.monotonic()) < began + within_s:
            try:
                if answer := condition():
                    return answer
                if now >= word_at:
                    reason = why()
            except httpx.TransportError:
                reason = "the portal does not answer"
            if now >= word_at:
                self.say(f"Waiting for {what}{reason and ': '}{reason}")
                word_at = now + WORD_S
            time.sleep(every_s)
        raise NotSoError(f"Waited {within_s:.0f} s in vain for {what}{reason and ': '}{reason}.")

    def wait_for_step(self, id: int, step: int) -> None:
        def reached() -> bool:
            job = self.job(id)
            if len(self.steps(id)) >= step:
                return True
            if job["state"] in ENDED:
                raise NotSoError(f"Job {id} ended before step {step}: {standing_of(job)}")
            return False

        self.wait(f"job {id} to reach step {step}", reached, why=lambda: self.standing(id))

    def wait_for_end(self, id: int) -> dict[str, Any]:
        """Answer the job once it has succeeded. Raises ``NotSoError`` when it ended otherwise."""

        def ended() -> dict[str, Any] | None:
            job = self.job(id)
            return job if job["state"] in ENDED else None

        job: dict[str, Any] = self.wait(f"job {id} to end", ended, why=lambda: self.standing(id))
        if job["state"] != "succeeded":
            raise NotSoError(f"Job {id} did not succeed: {standing_of(job)}")
        return job

    def standing(self, id: int) -> str:
        """Say where a job stands, and why as far as it is told."""
        return standing_of(self.job(id))

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
            wrong = NotNowError if response.status_code == httpx.codes.CONFLICT else NotSoError
            raise wrong(f"{response.request.url.path}: {response.status_code} {sentence}")
        return response.json()


def standing_of(job: dict[str, Any]) -> str:
    told = job["detail"] or (job["sentence"] if job["state"] == "waiting" else "")
    return f"it is {job['state']}{told and '. '}{told}".rstrip(".")


def pack(folder: Path) -> bytes:
    """Answer a folder's files as a compressed archive."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for path in sorted(folder.iterdir()):
            if path.is_file():
                archive.add(path, arcname=path.name)
    return buffer.getvalue()
