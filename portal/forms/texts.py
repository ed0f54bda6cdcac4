"""Fields in which people type commands, variables, times and sizes as they would say them."""

from __future__ import annotations

import re
import shlex
from typing import Any

from django import forms

UNITS_S = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)")
GIB = 2**30
UNITS_B = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?b)?")


class CommandField(forms.CharField):
    """A command as one would type it into a shell; its words come out."""

    def to_python(self, value: Any) -> Any:
        text = super().to_python(value)
        try:
            return shlex.split(text or "")
        except ValueError:
            raise forms.ValidationError("A quotation mark is not closed.") from None

    def prepare_value(self, value: Any) -> Any:
        return shlex.join(value) if isinstance(value, list) else value


class PairsField(forms.CharField):
    """Variables, one ``NAME=value`` a line."""

    def to_python(self, value: Any) -> Any:
        pairs: dict[str, str] = {}
        for number, line in enumerate((super().to_python(value) or "").splitlines(), start=1):
            if not line.strip():
                continue
            name, equals, content = line.partition("=")
            if not equals:
                raise forms.ValidationError(f"Line {number} is not NAME=value.")
            pairs[name.strip().removeprefix("export ").strip()] = content.strip()
        return pairs

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, dict):
            return "\n".join(f"{name}={content}" for name, content in value.items())
        return value


class TagsField(forms.CharField):
    """Words with commas or spaces between them."""

    def to_python(self, value: Any) -> Any:
        return [tag for tag in re.split(r"[,\s]+", super().to_python(value) or "") if tag]

    def prepare_value(self, value: Any) -> Any:
        return ", ".join(value) if isinstance(value, list) else value


class SpanField(forms.CharField):
    """A time like ``90``, ``20 min`` or ``1 h 30 m``; seconds come out, or None."""

    def to_python(self, value: Any) -> Any:
        text = (super().to_python(value) or "").strip().lower()
        if not text:
            return None
        parts = SPAN.findall(text)
        rest = SPAN.sub("", text).strip()
        if not parts or rest or any(unit not in UNITS_S for _, unit in parts):
            raise forms.ValidationError("Write a time like 45 min, 2 h 30 min or 1 d.")
        return sum(float(number) * UNITS_S[unit] for number, unit in parts)

    def prepare_value(self, value: Any) -> Any:
        if not isinstance(value, int | float):
            return value
        for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
            if value and value % length == 0:
                return f"{value / length:g} {unit}"
        return f"{value:g} s"


class SizeField(forms.CharField):
    """A size like ``16`` (GiB) or ``512 MiB``; bytes come out, 0 for nothing."""

    def to_python(self, value: Any) -> Any:
        text = (super().to_python(value) or "").strip().lower()
        if not text:
            return 0
        match = SIZE.fullmatch(text)
        if not match:
            raise forms.ValidationError("Write a size like 16 GiB or 512 MiB.")
        unit = UNITS_B[match[2]] if match[2] or match[3] else GIB
        return int(float(match[1]) * unit)

    def prepare_value(self, value: Any) -> Any:
        if not isinstance(value, int):
            return value
        for unit, length in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
            if value and value % length == 0:
                return f"{value // length} {unit}"
        return f"{value} B" if value else ""
