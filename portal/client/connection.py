"""Talk to the portal, and turn its refusals into sentences that name the field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import click
import httpx

from portal.client.keeping import Login

TIMEOUT = httpx.Timeout(60, connect=10)


class Refusal(click.ClickException):
    """The portal said no. ``status`` is its HTTP status, ``id`` the stable id of the error."""

    def __init__(self, status: int, id: str, detail: str, fields: Mapping[str, str]) -> None:
        named = {field: sentence for field, sentence in fields.items() if field}
        lines = [f"{field}: {sentence}" for field, sentence in named.items()]
        super().__init__("\n".join(lines) or detail)
        self.status = status
        self.id = id


class Unreachable(click.ClickException):
    """Nothing answers at the address."""


class Portal:
    """One portal, as one user sees it. Paths are relative to ``/api/v1/``."""

    def __init__(self, login: Login, transport: httpx.BaseTransport | None = None) -> None:
        self.login = login
        self.transport = transport
        headers = {"Authorization": f"Bearer {login.token}"} if login.token else {}
        self.http = httpx.Client(
            base_url=f"{login.url}/api/v1/",
            headers={"Accept": "application/json, */*", **headers},
            timeout=TIMEOUT,
            transport=transport,
        )

    def at(self, login: Login) -> Portal:
        """Answer another view of the same network; close it."""
        return Portal(login, self.transport)

    def close(self) -> None:
        self.http.close()

    def get(self, path: str, **query: Any) -> Any:
        """Answer the JSON at a path; parameters that are None or empty are left out."""
        asked = {key: value for key, value in query.items() if value not in (None, "")}
        return self.send("GET", path, params=asked).json()

    def post(self, path: str, body: Any = None) -> Any:
        return self.body_of(self.send("POST", path, json=body if body is not None else {}))

    def put(self, path: str, body: Any) -> Any:
        return self.body_of(self.send("PUT", path, json=body))

    def patch(self, path: str, body: Any) -> Any:
        return self.body_of(self.send("PATCH", path, json=body))

    def delete(self, path: str) -> None:
        self.send("DELETE", path)

    def pages(self, path: str, limit: int | None = None, **query: Any) -> list[Any]:
        """Answer the first ``limit`` rows of a list (None: all), page by page."""
        rows: list[Any] = []
        number = 1
        while True:
            size = min(500, limit or 500)
            answer = self.get(path, page=number, page_size=size, **query)
            rows += answer["results"]
            if not answer["next"] or (limit and len(rows) >= limit):
                return rows[:limit]
            number += 1

    def send(self, method: str, path: str, **told: Any) -> httpx.Response:
        """Send a request. Raises ``Refusal`` or ``Unreachable``."""
        with self.reaching():
            response = self.http.request(method, path, **told)
        check(response)
        return response

    @contextmanager
    def stream(self, path: str, **query: Any) -> Iterator[httpx.Response]:
        """Answer a response whose content is read while it comes."""
        with self.reaching(), self.http.stream("GET", path, params=query) as response:
            if response.is_error:
                response.read()
            check(response)
            yield response

    @contextmanager
    def reaching(self) -> Iterator[None]:
        try:
            yield
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise Unreachable(
                f"No portal answers at {self.login.url} ({error or type(error).__name__}). "
                "Set TIDEPOOL_URL, or say: tidepool login --url ADDRESS"
            ) from None

    @staticmethod
    def body_of(response: httpx.Response) -> Any:
        return response.json() if response.content else None


def check(response: httpx.Response) -> None:
    """Raise ``Refusal`` with what an error response says."""
    if response.is_success:
        return
    try:
        told = response.json()
        id, detail, fields = told["id"], told["detail"], told["fields"]
    except (ValueError, KeyError, TypeError):
        id, fields = "unknown", {}
        detail = f"The portal answered {response.status_code} {response.reason_phrase}."
    if response.status_code == httpx.codes.UNAUTHORIZED:
        detail = f"{detail} Log in with: tidepool login"
    raise Refusal(response.status_code, id, detail, fields)
