"""Fields in which people type things as they would say them."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError

from portal.forms.texts import CommandField, PairsField, SizeField, SpanField, TagsField


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("45 s", 45),
        ("20 min", 1200),
        ("1 h 30 m", 5400),
        ("2.5h", 9000),
        ("1d", 86400),
        ("", None),
    ],
)
def test_times(text: str, seconds: float | None) -> None:
    assert SpanField(required=False).clean(text) == seconds


@pytest.mark.parametrize("text", ["soon", "3 weeks", "1 h later", "-5"])
def test_times_that_are_none(text: str) -> None:
    with pytest.raises(ValidationError):
        SpanField(required=False).clean(text)


@pytest.mark.parametrize(
    ("text", "size"),
    [("16", 16 * 2**30), ("16 GiB", 16 * 2**30), ("512MB", 2**29), ("1.5g", 3 * 2**29), ("", 0)],
)
def test_sizes(text: str, size: int) -> None:
    assert SizeField(required=False).clean(text) == size


def test_a_size_that_is_none() -> None:
    with pytest.raises(ValidationError):
        SizeField(required=False).clean("lots")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (CommandField(), ["python", "a b.py", "it's"]),
        (PairsField(), {"A": "1", "B": "x=y"}),
        (SpanField(), 5400.0),
        (SpanField(), 61),
        (SizeField(), 3 * 2**29),
        (SizeField(), 7),
        (TagsField(), ["a", "b"]),
    ],
)
def test_what_is_shown_reads_back_as_the_same(
    field: CommandField | PairsField | SpanField | SizeField | TagsField, value: object
) -> None:
    assert field.clean(field.prepare_value(value)) == value


def test_variables_may_be_written_as_for_a_shell() -> None:
    assert PairsField().clean("export A=1\n\n  B = 2 \n") == {"A": "1", "B": "2"}
