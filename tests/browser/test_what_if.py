"""What if in a real browser: asked, watched without a reload, compared, readable everywhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Portal, log_in, manage
from tests.browser.test_look import CONTRAST, THEMES, overflow
from tests.product import Product

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(600)]
PLAY = "from scheduler.live.simulating import run_next; run_next()"


def test_a_question_is_asked_played_and_compared(
    sample: Portal, page: Page, complaints: list[str]
) -> None:
    page.emulate_media(reduced_motion="reduce")
    log_in(page, sample)
    page.get_by_role("link", name="What if").click()
    page.get_by_label("More nodes").fill("2")
    page.get_by_label("Like", exact=True).select_option("node-1")
    page.get_by_role("button", name="Simulate").click()
    expect(page).to_have_url(re.compile(r"/what-if/\d+/$"))
    expect(page.get_by_text("Queued")).to_be_visible()
    expect(page.locator("#live")).to_have_text("Live")
    manage(sample.environment, "shell", "-v0", "-c", PLAY)
    expect(page.get_by_text("Done")).to_be_visible()
    expect(page.locator("table.compared tbody tr").first).to_contain_text("Jobs finished")
    expect(page.locator("#figures .chart .main-svg").first).to_be_visible()
    found: list[str] = []
    for theme in THEMES:
        page.emulate_media(color_scheme=theme)
        found += [f"{theme}: {faint}" for faint in page.evaluate(CONTRAST)]
        for width in (1440, 390):
            page.set_viewport_size({"width": width, "height": 900})
            if overflow(page) > 0:
                found.append(f"too wide for {width}")
    assert found == []
    assert complaints == []


def test_the_products_worker_plays_a_trace_of_ones_own(
    product: Product, page: Page, complaints: list[str], tmp_path: Path
) -> None:
    trace = tmp_path / "mine.csv"
    lines = (f"{10 * number},600,{1 + number % 2}" for number in range(40))
    trace.write_text("\n".join(["submit_time,duration,gpus", *lines]))
    log_in(page, Portal(product.url, "admin", product.accounts["admin"]))
    page.goto(f"{product.url}/what-if/")
    page.get_by_label("Or a trace of your own").set_input_files(trace)
    page.get_by_label("Policy").select_option("fifo")
    page.get_by_role("button", name="Simulate").click()
    expect(page.get_by_text("Done")).to_be_visible(timeout=300_000)
    expect(page.locator("table.compared")).to_contain_text("Jobs finished")
    expect(page.get_by_text("40 jobs of mine.csv.")).to_be_visible()
    assert complaints == []
