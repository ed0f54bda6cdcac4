"""The API's description: complete, without warnings, and as it was when last agreed upon."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.validation import validate_schema

AGREED = Path(__file__).with_name("openapi.json")


@pytest.fixture(scope="module")
def schema() -> Any:
    with GENERATOR_STATS.silence():
        made = SchemaGenerator().get_schema(request=None, public=True)
    return json.loads(json.dumps(made))


def outline(schema: Any) -> dict[str, Any]:
    """Every operation with what it takes and answers, and every shape with its fields."""
    paths = {
        f"{method.upper()} {path}": {
            "takes": sorted(find(operation.get("requestBody", {}))),
            "answers": {code: sorted(find(it)) for code, it in operation["responses"].items()},
        }
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    }
    shapes = {
        name: sorted(shape.get("properties", shape.get("enum", [])))
        for name, shape in schema["components"]["schemas"].items()
    }
    return {"paths": paths, "shapes": shapes}


def find(part: Any) -> set[str]:
    """The names of the shapes that a part of the description refers to."""
    if isinstance(part, dict):
        own = {part["$ref"].rpartition("/")[2]} if "$ref" in part else set()
        return own.union(*(find(value) for value in part.values()))
    return set().union(*map(find, part)) if isinstance(part, list) else set()


def test_it_is_made_without_warnings() -> None:
    GENERATOR_STATS.reset()
    with GENERATOR_STATS.silence():
        schema = SchemaGenerator().get_schema(request=None, public=True)
    said = {**GENERATOR_STATS._warn_cache, **GENERATOR_STATS._error_cache}
    assert not said
    validate_schema(schema)


def test_it_is_as_agreed(schema: Any) -> None:
    now = json.dumps(outline(schema), indent=1, sort_keys=True) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        AGREED.write_text(now)
    assert json.loads(now) == json.loads(AGREED.read_text()), (
        "The API's shape changed; if that is meant, run the test with UPDATE_GOLDEN=1."
    )


def test_every_operation_says_what_it_does(schema: Any) -> None:
    silent = [
        operation["operationId"]
        for methods in schema["paths"].values()
        for operation in methods.values()
        if not operation.get("description")
    ]
    assert not silent


@pytest.mark.django_db
def test_the_docs_page_needs_nothing_from_elsewhere() -> None:
    client = Client()
    for address in ("/api/docs/", "/api/docs/?script="):
        answer = client.get(address)
        assert answer.status_code == 200
        assert "https://" not in answer.content.decode()
    assert "<script>" not in client.get("/api/docs/").content.decode()
    assert client.get("/api/schema/").status_code == 200
