"""Tenants: quotas and tiers edited in place, members kept by managers, changes on the trail."""

from __future__ import annotations

from collections.abc import Callable

from portal.models import AuditEntry, Job, Membership, Node, Quota, Tenant, Tier, User
from tests.portal.api.conftest import place
from tests.portal.pages.conftest import Browser


def test_use_is_shown_beside_reserve_and_borrowing(
    browser: Browser, make_job: Callable[..., Job], node: Node, vision: Tenant, alice: User
) -> None:
    Quota.objects.filter(tenant=vision).update(reserved=1, borrow=4)
    place(make_job(state="running", replicas=2), node, devices=2)
    page = browser(alice).get("/tenants/").content.decode()
    assert "1 borrowed" in page
    assert "borrows up to 4" in page
    assert "part-borrowed" in page


def test_a_user_sees_only_their_tenants(
    browser: Browser, vision: Tenant, language: Tenant, alice: User, root: User
) -> None:
    assert "Language" not in browser(alice).get("/tenants/").content.decode()
    assert "Language" in browser(root).get("/tenants/").content.decode()
    assert browser(alice).get("/tenants/language/").status_code == 404


def test_tenants_stand_as_a_tree(browser: Browser, vision: Tenant, root: User) -> None:
    Tenant.objects.create(slug="aaa", title="Below", parent=vision)
    branches = browser(root).get("/tenants/").context["branches"]
    found = [(branch.tenant.slug, branch.depth) for branch in branches]
    assert found.index(("aaa", 1)) == found.index(("vision", 0)) + 1


def test_a_quota_is_edited_in_place(browser: Browser, vision: Tenant, root: User) -> None:
    quota = vision.quotas.get()
    address = f"/tenants/vision/quotas/{quota.id}/"
    assert 'value="8"' in browser(root).get(address).content.decode()
    values = {"quota-reserved": "12", "quota-borrow": "", "quota-lend": "on"}
    card = browser(root).post(address, values).content.decode()
    assert "borrows without limit" in card
    quota.refresh_from_db()
    assert (quota.reserved, quota.borrow, quota.lend) == (12, None, True)
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.before["reserved"], entry.after["reserved"]) == (root, 8, 12)
    assert "quota set" in browser(root).get("/audit/").content.decode()


def test_a_wrong_quota_is_refused_at_its_field(
    browser: Browser, vision: Tenant, root: User
) -> None:
    quota = vision.quotas.get()
    answer = browser(root).post(f"/tenants/vision/quotas/{quota.id}/", {"quota-reserved": "-1"})
    assert answer.status_code == 422
    quota.refresh_from_db()
    assert quota.reserved == 8


def test_a_quota_for_a_kind_comes_and_goes(browser: Browser, vision: Tenant, root: User) -> None:
    client = browser(root)
    values = {"quota-device_kind": "H100", "quota-reserved": "2", "quota-borrow": "0"}
    client.post("/tenants/vision/quotas/0/", values)
    kind, general = vision.quotas.get(device_kind="H100"), vision.quotas.get(device_kind="")
    client.post(f"/tenants/vision/quotas/{kind.id}/remove/")
    assert not vision.quotas.filter(device_kind="H100").exists()
    answer = client.post(f"/tenants/vision/quotas/{general.id}/remove/")
    assert "only quota" in answer.content.decode()
    assert vision.quotas.count() == 1
    assert client.post("/tenants/language/quotas/999/remove/").status_code == 404


def test_a_tier_is_edited_in_per_cent(browser: Browser, tiers: dict[str, Tier], root: User) -> None:
    form = browser(root).get("/tiers/standard/").content.decode()
    assert 'value="70.0"' in form
    values = {"tier-title": "Standard", "tier-percent": "80", "tier-rank": "20",
              "tier-preemptible": "on", "tier-checkpoint_every_s": "15 min"}  # fmt: skip
    row = browser(root).post("/tiers/standard/", values).content.decode()
    assert "80 % of its devices" in row
    tier = Tier.objects.get(slug="standard")
    assert (tier.promise, tier.checkpoint_every_s) == (0.8, 900)
    wrong = browser(root).post("/tiers/standard/", {**values, "tier-percent": "180"})
    assert wrong.status_code == 422


def test_a_manager_keeps_the_members_of_their_tenant_only(
    browser: Browser, vision: Tenant, language: Tenant, alice: User, charlie: User
) -> None:
    client = browser(alice)
    told = {"username": "charlie", "role": "researcher"}
    assert client.post("/tenants/vision/members/", told).status_code == 403
    Membership.objects.filter(user=alice).update(role="manager")
    assert "charlie" in client.post("/tenants/vision/members/", told).content.decode()
    member = Membership.objects.get(user=charlie, tenant=vision)
    client.post(f"/tenants/vision/members/{member.id}/remove/")
    assert not Membership.objects.filter(user=charlie, tenant=vision).exists()
    assert client.post("/tenants/language/members/", told).status_code == 404


def test_an_unknown_account_is_refused_at_its_field(
    browser: Browser, vision: Tenant, root: User
) -> None:
    answer = browser(root).post("/tenants/vision/members/", {"username": "x", "role": "manager"})
    assert answer.status_code == 422
    assert "There is no account" in answer.content.decode()


def test_a_tenant_is_added(browser: Browser, vision: Tenant, root: User) -> None:
    client = browser(root)
    client.post("/tenants/add/", {"slug": "speech", "title": "Speech", "parent": "vision"})
    assert Tenant.objects.get(slug="speech").parent == vision
    answer = client.post("/tenants/add/", {"slug": "speech"})
    assert answer.status_code == 422
    assert answer.context["form"].errors["slug"]
