"""What tests of the pages share: browsers that are logged in, a node, and jobs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from portal.models import User
from tests.portal.api.conftest import job, make_job, node, own_folders

__all__ = ["job", "make_job", "node", "own_folders"]

Browser = Callable[[User | None], Client]


@pytest.fixture
def browser(db: None) -> Browser:
    """Answer a client that is logged in as someone; None: a stranger to the portal."""

    def of(user: User | None) -> Client:
        client = Client()
        if user is not None:
            client.force_login(user)
        return client

    return of
