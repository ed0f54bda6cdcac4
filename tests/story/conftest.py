"""Stories run against the real product, which every one of them finds running and healthy."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from portal.demo.fleet import WEIGHTS, Fleet
from portal.demo.story import DIGITS
from tests.product import Product, wait_for


@pytest.fixture(autouse=True)
def _running(product: Product) -> None:
    """Start it again where the story before has left it stopped."""
    if product.process is None or product.process.poll() is not None:
        product.process = None
        product.start()
    wait_for(product.healthy, "the product to be healthy", 120)


@pytest.fixture
def ana(product: Product) -> Iterator[Fleet]:
    """The API as ana of tenant vision sees it."""
    fleet = Fleet(product.url, product.token("ana"), "vision")
    yield fleet
    with contextlib.suppress(httpx.HTTPError):
        for job in fleet.live():
            fleet.cancel(job)
    fleet.close()


@pytest.fixture
def ben(product: Product) -> Iterator[Fleet]:
    """The API as ben of tenant language sees it."""
    fleet = Fleet(product.url, product.token("ben"), "language")
    yield fleet
    fleet.close()


def undisturbed(folder: Path, steps: int) -> str:
    """Answer the weights that so many steps lead to, computed here without the product."""
    done = subprocess.run(
        [sys.executable, str(DIGITS / "train.py"), "--steps", str(steps)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    found = WEIGHTS.search(done.stdout)
    assert found
    return found[1]
