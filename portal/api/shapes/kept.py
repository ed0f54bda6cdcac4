"""Shapes whose fields are made once, for those that are read or shown at every turn."""

from __future__ import annotations

import threading
from typing import Any

from django.utils.functional import cached_property
from rest_framework import serializers


class _Kept(threading.local):
    def __init__(self) -> None:
        self.fields: dict[type[serializers.BaseSerializer[Any]], Any] = {}


_kept = _Kept()


class KeptFields(serializers.BaseSerializer[Any]):
    """Shares its fields with the others of its class in this thread.

    A serializer makes and binds its fields anew for each request, which takes longer than to read
    one. Those shared are bound to a blank serializer: no field may look at data or context.
    """

    @cached_property
    def fields(self) -> Any:
        kind = type(self)
        if kind not in _kept.fields:
            _kept.fields[kind] = serializers.Serializer.fields.func(kind())  # type: ignore[attr-defined]
        return _kept.fields[kind]
