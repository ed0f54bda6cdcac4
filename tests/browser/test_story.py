"""A researcher's first visit, in a real browser against the whole product."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Portal, log_in
from tests.product import Product

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(400)]
LONG_MS = 120_000
SCRIPT = """\
import time
print("\\033[32mhello from the file\\033[0m", flush=True)
for step in range(3000):
    print("step", step, flush=True)
    time.sleep(0.2)
"""


def test_a_job_is_submitted_watched_cancelled_and_cloned(
    product: Product, page: Page, complaints: list[str], tmp_path: Path
) -> None:
    """Its lines arrive while the page is open, and its state changes without a reload."""
    log_in(page, Portal(product.url, "ana", product.accounts["ana"]))
    be_live(page)
    page.get_by_role("link", name="Submit a job").click()
    script = tmp_path / "count.py"
    script.write_text(SCRIPT)
    page.locator("#id_file").set_input_files(script)
    expect(page.locator("#drop-words")).to_contain_text("count.py", timeout=LONG_MS)
    expect(page.locator("#id_upload")).to_have_value(re.compile(r"\d+"), timeout=LONG_MS)
    page.get_by_label("Name", exact=True).fill("first-visit")
    page.get_by_label("Command").fill("python count.py")
    expect(page.locator("#preview")).to_contain_text("1 device", timeout=LONG_MS)
    page.get_by_role("button", name="Submit", exact=True).click()

    expect(page).to_have_url(re.compile(r"/jobs/\d+/"), timeout=LONG_MS)
    be_live(page)
    text = page.locator("[data-log-text]")
    expect(text).to_contain_text("hello from the file", timeout=LONG_MS)
    expect(page.locator("#state")).to_contain_text("Running", timeout=LONG_MS)
    expect(text).to_contain_text("step 5\n", timeout=LONG_MS)
    lines = [int(step) for step in re.findall(r"step (\d+)", text.inner_text())]
    assert lines == list(range(len(lines))), "each line is there once, in its place"

    page.locator("#summary").get_by_role("link", name="Cancel").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("gives up its devices", timeout=LONG_MS)
    dialog.get_by_role("button", name="Cancel").click()
    expect(page.locator("#state")).to_contain_text("Cancelled", timeout=LONG_MS)
    be_live(page)

    page.locator("#summary").get_by_role("link", name="Clone").click()
    expect(page.locator("#drop-words")).to_contain_text("count.py", timeout=LONG_MS)
    page.get_by_label("Command").fill("sh -c 'cat count.py; echo 42 > answer.txt'")
    page.get_by_role("button", name="Submit", exact=True).click()
    expect(page).to_have_url(re.compile(r"/jobs/\d+/"), timeout=LONG_MS)
    be_live(page)
    expect(page.locator("#state")).to_contain_text("Succeeded", timeout=LONG_MS)
    expect(page.locator("#files")).to_contain_text("answer.txt", timeout=LONG_MS)
    with page.expect_download() as download:
        page.locator("#files").get_by_role("link", name="answer.txt").click()
    assert download.value.path().read_text() == "42\n"
    assert complaints == []


def be_live(page: Page) -> None:
    """Wait until the page's socket is open: one that is left before complains of it."""
    expect(page.locator("#live")).to_have_text("Live", timeout=LONG_MS)
