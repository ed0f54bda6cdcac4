"""Fields that read alike from JSON and from the text fields of a form."""

from __future__ import annotations

import json
import shlex
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

STRING_LIST = {"type": "array", "items": {"type": "string"}}
STRING_MAP = {"type": "object", "additionalProperties": {"type": "string"}}


@extend_schema_field(STRING_LIST)
class CommandField(serializers.Field[list[str], Any, list[str], Any]):
    """A list of words; text is split as a shell would."""

    default_error_messages = {
        "type": 'Give a list of words, e.g. ["python", "train.py"].',
        "quotes": "A quotation mark is missing.",
    }

    def to_internal_value(self, data: Any) -> list[str]:
        if isinstance(data, str):
            data = from_json(data) if data.lstrip().startswith("[") else self.split(data)
        if not isinstance(data, list) or not all(isinstance(word, str) for word in data):
            self.fail("type")
        return data

    def split(self, text: str) -> list[str]:
        try:
            return shlex.split(text)
        except ValueError:
            self.fail("quotes")

    def to_representation(self, value: list[str]) -> list[str]:
        return value


@extend_schema_field(STRING_MAP)
class VariablesField(serializers.Field[dict[str, str], Any, dict[str, str], Any]):
    """Names and values; text is JSON, or a line ``NAME=value`` each."""

    default_error_messages = {
        "type": 'Give names and text values, e.g. {{"EPOCHS": "10"}}.',
        "line": "Write NAME=value on each line; this one is not: {line}",
    }

    def to_internal_value(self, data: Any) -> dict[str, str]:
        if isinstance(data, str):
            data = from_json(data) if data.lstrip().startswith("{") else self.lines(data)
        if not isinstance(data, dict):
            self.fail("type")
        values = {name: plain(value) for name, value in data.items()}
        if any(value is None for value in values.values()):
            self.fail("type")
        return {str(name): str(value) for name, value in values.items()}

    def lines(self, text: str) -> dict[str, str]:
        values = {}
        for line in filter(None, (line.strip() for line in text.splitlines())):
            name, equals, value = line.partition("=")
            if not equals:
                self.fail("line", line=line[:60])
            values[name.strip()] = value
        return values

    def to_representation(self, value: dict[str, str]) -> dict[str, str]:
        return value


@extend_schema_field(STRING_LIST)
class TagsField(serializers.Field[list[str], Any, list[str], Any]):
    """A list of words; text is JSON, or words with commas between."""

    default_error_messages = {"type": "Give a list of words."}

    def to_internal_value(self, data: Any) -> list[str]:
        if isinstance(data, str):
            words = (word.strip() for word in data.split(","))
            data = from_json(data) if data.lstrip().startswith("[") else [w for w in words if w]
        if not isinstance(data, list) or not all(isinstance(word, str) for word in data):
            self.fail("type")
        return data

    def to_representation(self, value: list[str]) -> list[str]:
        return value


def plain(value: Any) -> str | None:
    """Answer text or a number as text; None for what is neither."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return str(value)


def from_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise serializers.ValidationError("This is not valid JSON.", code="type") from None
