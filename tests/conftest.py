"""What every test shares: the rules that hold in CI, no network, people, and the whole product."""

from __future__ import annotations

import ipaddress
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.processes import with_parent

if TYPE_CHECKING:
    from django.test import Client
    from redis import Redis

    from portal.models import Tenant, Tier, User
    from tests.product import Product

LAST = 6000
"""Characters shown of what a failed try has left."""
IN_CI = os.environ.get("CI") == "true"
TIERS = (("premium", 30, 0.95), ("standard", 20, 0.70), ("basic", 10, 0.0))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """In CI a test that does not run is a failure, unless it needs a GPU."""
    outcome: Any = yield
    report = outcome.get_result()
    expected = hasattr(report, "wasxfail") or item.get_closest_marker("gpu")
    if IN_CI and report.skipped and not expected:
        report.outcome = "failed"
        report.longrepr = f"Skipped in CI, where it must run: {report.longrepr}"

    product = _product_of(item)
    if report.failed and product is not None:
        report.sections.append(("what the product logged last", product.last_words()))


def _product_of(item: pytest.Item) -> Product | None:
    """The product that a test stands on, if it does."""
    from tests.product import Product

    found = getattr(item, "funcargs", {}).values()
    return next((each for each in found if isinstance(each, Product)), None)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Tell why a first try failed, though a later one passed: it will fail again some day."""
    for report in terminalreporter.stats.get("rerun", ()):
        terminalreporter.section(f"{report.nodeid}: a try that failed ({report.when})", sep="_")
        terminalreporter.write_line(report.longreprtext)
        for title, text in report.sections:
            terminalreporter.write_line(f"--- {title}")
            terminalreporter.write_line(text[-LAST:])


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report() -> Iterator[None]:
    """In CI a file that is skipped whole is a failure too."""
    outcome: Any = yield
    report = outcome.get_result()
    if IN_CI and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"Skipped in CI, where it must run: {report.longrepr}"


def pytest_configure(config: pytest.Config) -> None:
    """Told to stop, leave in order: fixtures end what they have started."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_: pytest.exit("told to stop", returncode=143))


@pytest.fixture(scope="session", autouse=True)
def _offline() -> Iterator[None]:
    """Refuse connections that would leave this machine."""
    connect, connect_ex = socket.socket.connect, socket.socket.connect_ex

    def guarded(self: socket.socket, address: Any) -> None:
        refuse_far(self, address)
        connect(self, address)

    def guarded_ex(self: socket.socket, address: Any) -> int:
        refuse_far(self, address)
        return connect_ex(self, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", guarded)
        patch.setattr(socket.socket, "connect_ex", guarded_ex)
        yield


def refuse_far(sock: socket.socket, address: Any) -> None:
    if sock.family not in {socket.AF_INET, socket.AF_INET6} or address[0] == "localhost":
        return
    if not ipaddress.ip_address(address[0]).is_loopback:
        raise PermissionError(f"A test wanted to reach {address[0]}; tests stay on this machine.")


@pytest.fixture
def tiers(db: None) -> dict[str, Tier]:
    """The three service tiers by slug."""
    from portal.models import Tier

    return {
        slug: Tier.objects.update_or_create(
            slug=slug, defaults={"title": slug.title(), "rank": rank, "promise": promise}
        )[0]
        for slug, rank, promise in TIERS
    }


@pytest.fixture
def make_tenant(db: None) -> Callable[..., Tenant]:
    """Make a tenant with a quota (None: without) and members: ``make_tenant("vision", alice)``."""
    from portal.models import Membership, Quota, Tenant

    def make(
        slug: str, *members: User, reserved: int | None = 8, role: str = "researcher"
    ) -> Tenant:
        tenant, _ = Tenant.objects.get_or_create(slug=slug, defaults={"title": slug.title()})
        if reserved is not None:
            Quota.objects.update_or_create(
                tenant=tenant, device_kind="", defaults={"reserved": reserved}
            )
        for member in members:
            Membership.objects.update_or_create(user=member, tenant=tenant, defaults={"role": role})
        return tenant

    return make


@pytest.fixture
def alice(make_user: Callable[..., User], vision: Tenant) -> User:
    """A researcher of tenant vision."""
    return make_user("alice", vision)


@pytest.fixture
def bob(make_user: Callable[..., User], vision: Tenant) -> User:
    """Another researcher of tenant vision."""
    return make_user("bob", vision)


@pytest.fixture
def charlie(make_user: Callable[..., User], language: Tenant) -> User:
    """A stranger to alice and bob: a researcher of tenant language."""
    return make_user("charlie", language)


@pytest.fixture
def root(make_user: Callable[..., User]) -> User:
    """An admin of the platform, member of no tenant."""
    return make_user("root", is_staff=True)


@pytest.fixture
def make_user(db: None) -> Callable[..., User]:
    """Make a user, a researcher of the tenants that follow the name; the password is the name."""
    from portal.models import Membership, User

    def make(name: str, *tenants: Tenant, **fields: Any) -> User:
        user = User.objects.create_user(name, password=name, **fields)
        for tenant in tenants:
            Membership.objects.create(user=user, tenant=tenant)
        return user

    return make


@pytest.fixture
def vision(make_tenant: Callable[..., Tenant], tiers: dict[str, Tier]) -> Tenant:
    """The tenant of alice and bob; eight devices reserved."""
    return make_tenant("vision")


@pytest.fixture
def language(make_tenant: Callable[..., Tenant], tiers: dict[str, Tier]) -> Tenant:
    """The tenant of charlie; eight devices reserved."""
    return make_tenant("language")


@pytest.fixture
def browser_of() -> Callable[[User], Client]:
    """Answer a test client that is logged in as somebody."""
    from django.test import Client

    def log_in(user: User) -> Client:
        client = Client()
        client.force_login(user)
        return client

    return log_in


@pytest.fixture(scope="session")
def broker() -> Iterator[None]:
    """An embedded broker at the address in the settings."""
    from django.conf import settings
    from redis import Redis

    from portal.supervision import parts
    from tests.product import wait_for

    (settings.HOME / "broker").mkdir(exist_ok=True)
    part = parts.broker(settings.REDIS_URL, settings.HOME)
    assert part is not None
    with subprocess.Popen(
        part.command, stdout=subprocess.DEVNULL, preexec_fn=with_parent()
    ) as process:
        try:
            with Redis.from_url(settings.REDIS_URL) as client:
                wait_for(lambda: alive(client), "the broker")
            yield
        finally:
            process.terminate()


def alive(client: Redis) -> bool:
    from redis import RedisError

    try:
        return bool(client.ping())
    except RedisError:
        return False


@pytest.fixture(scope="session")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """The real product, started in a home of its own on a free port; slow."""
    from tests.product import Product

    limit = {"TIDEPOOL_UPLOAD_LIMIT": str(16 * 1024 * 1024)}
    with Product(tmp_path_factory.mktemp("home"), limit) as running:
        yield running
