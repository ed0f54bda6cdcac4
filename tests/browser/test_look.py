"""Pages in a real browser: nothing sticks out, nothing is too faint, nothing is forbidden."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Portal, log_in, manage

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(400)]
PAGES = ("/", "/?metric=owner", "/?metric=memory", "/jobs/", "/jobs/40/", "/jobs/47/",
         "/jobs/new/", "/nodes/", "/nodes/node-1/drain/", "/tenants/", "/promises/",
         "/promises/?job=41",
         "/partitions/", "/partitions/interconnect/", "/accounts/", "/accounts/mira/", "/tokens/",
         "/preferences/password/", "/preferences/", "/audit/", "/policy/",
         "/what-if/", "/what-if/compare/", "/nothing/")  # fmt: skip
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
CONTRAST = (Path(__file__).parent / "contrast.js").read_text()


def overflow(page: Page) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth - innerWidth"))


def test_every_page_fits_and_can_be_read(sample: Portal, page: Page, complaints: list[str]) -> None:
    """On a wide and on a narrow screen, in both themes; the console stays silent."""
    page.emulate_media(reduced_motion="reduce")
    log_in(page, sample)
    found: list[str] = []
    for address in PAGES:
        page.goto(sample.url + address)
        page.wait_for_load_state("load")
        for width in (1440, 390):
            page.set_viewport_size({"width": width, "height": 900})
            if overflow(page) > 0:
                found.append(f"{address} is too wide for {width}")
        for theme in THEMES:
            page.emulate_media(color_scheme=theme)
            found += [f"{address} {theme}: {faint}" for faint in page.evaluate(CONTRAST)]
        page.set_viewport_size({"width": 1440, "height": 900})
    assert found == [], "\n".join(found)
    assert [words for words in complaints if "/nothing/" not in words] == []


def test_the_fleet_is_live_and_leads_to_jobs(
    sample: Portal, page: Page, complaints: list[str]
) -> None:
    log_in(page, sample)
    expect(page.locator("#live")).to_have_text("Live", timeout=60_000)
    page.get_by_role("button", name="Allocation").click()
    expect(page).to_have_url(re.compile("metric=owner"))
    page.locator("#charts").scroll_into_view_if_needed()
    expect(page.locator("#by-tenant .main-svg").first).to_be_visible(timeout=60_000)
    page.locator(".room header a").first.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".tile:focus")).to_have_attribute("aria-label", re.compile("of node-1:"))
    stops = page.locator('.room a[tabindex="0"], .room .tile[tabindex="0"]')
    expect(stops).to_have_count(1)
    page.keyboard.press("End")
    expect(page.locator(".tile").last).to_be_focused()
    page.locator("a.tile").first.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/jobs/\d+/"))
    assert complaints == []


def test_jobs_are_narrowed_down_in_place(sample: Portal, page: Page) -> None:
    log_in(page, sample)
    page.goto(f"{sample.url}/jobs/")
    expect(page.locator("#live")).to_have_text("Live")  # the page's scripts listen by then
    page.keyboard.press("/")
    page.keyboard.type("wav2vec")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page).to_have_url(re.compile("q=wav2vec"))
    page.reload()
    expect(page.locator("tbody tr")).to_have_count(1)


def test_a_quota_is_edited_in_place(sample: Portal, page: Page, complaints: list[str]) -> None:
    log_in(page, sample)
    page.goto(f"{sample.url}/tenants/")
    card = page.locator("#robotics")
    card.get_by_role("button", name="Edit the quota of Robotics").click()
    card.get_by_role("spinbutton", name="Reserved").fill("-1")
    card.get_by_role("button", name="Save").click()
    expect(card.get_by_role("spinbutton", name="Reserved")).to_have_value("-1")
    card.get_by_role("spinbutton", name="Reserved").fill("5")
    card.get_by_role("button", name="Save").click()
    expect(card.locator(".share")).to_contain_text("2 used of 5 reserved")
    page.goto(f"{sample.url}/audit/")
    expect(page.locator("tbody tr").first).to_contain_text("quota of robotics")
    assert [words for words in complaints if "422" not in words] == []


def test_keys_lead_about(sample: Portal, page: Page) -> None:
    log_in(page, sample)
    expect(page.locator("#live")).to_have_text("Live")  # the page's scripts listen by then
    page.keyboard.press("?")
    expect(page.get_by_role("heading", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.type("gj")
    expect(page).to_have_url(re.compile("/jobs/$"))


def test_the_theme_is_chosen_at_once_and_kept(sample: Portal, page: Page) -> None:
    log_in(page, sample)
    page.locator(".menu > summary").click()
    with page.expect_response(re.compile("/preferences/")):
        page.get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_a_log_keeps_colours_and_can_be_searched(sample: Portal, page: Page) -> None:
    log_in(page, sample)
    page.goto(f"{sample.url}/jobs/40/")
    text = page.locator("[data-log-text]")
    expect(text).to_contain_text("step   9255")
    expect(text.locator(".c2").first).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("step   9100")
    expect(page.locator("[data-log-found]")).to_have_text("1 of 1 line")
    expect(text.locator("mark")).to_have_text("step   9100")


ENLARGE = """
from django.utils import timezone
from portal.models import Device, Node
nodes = Node.objects.bulk_create(
    Node(name=f"far-{n:03}", token_digest=f"far-{n}", region="far", cluster="field",
         rack=f"r{n // 62}", heard_at=timezone.now(), connected=True) for n in range(124))
Device.objects.bulk_create(
    Device(node=node, uid=f"GPU-{n}", index=n, kind="H100") for node in nodes for n in range(8))
"""


def test_a_map_of_many_nodes_is_walked_by_keys(
    sample: Portal, page: Page, complaints: list[str]
) -> None:
    """The last one here: from now on the sample fleet is too large for a tile a device."""
    manage(sample.environment, "shell", "-v0", "-c", ENLARGE)
    log_in(page, sample)

    def walk(*steps: tuple[str, str]) -> None:
        page.goto(sample.url)
        field = page.locator("canvas[data-cluster=field][tabindex='0']")
        told = page.locator("p.unseen[aria-live]")
        field.focus()
        for key, node in steps:
            # The map takes keys once its figures have come.
            expect(told).to_contain_text(re.compile("far-"))
            field.press(key)
            expect(told).to_contain_text(node)

    walk(("ArrowDown", "far-001"), ("ArrowUp", "far-000"), ("ArrowRight", "far-062"))
    page.keyboard.press("Space")
    expect(page).to_have_url(re.compile("cluster=field.*rack=r1"))
    walk(("End", "far-123"), ("ArrowLeft", "far-061"), ("Home", "far-000"))
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/nodes/\?q=far-000#far-000"))
    assert complaints == []
