"""One shape for every error: a stable id, a sentence, and the fields that are wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.http import Http404
from rest_framework import exceptions, status
from rest_framework.response import Response
from rest_framework.views import exception_handler

from agents.checkpoints import CheckpointError, NotStoredError, StoreUnreachableError
from portal.actions.signing import TooManyAttempts
from portal.actions.uploads import TooLarge
from portal.refusals import Refused

STATUSES = {TooManyAttempts: 429, TooLarge: 413}
STORE_STATUSES = {NotStoredError: 404, StoreUnreachableError: 503}
IDS = {
    exceptions.NotAuthenticated: "not-authenticated",
    exceptions.AuthenticationFailed: "not-authenticated",
    exceptions.MethodNotAllowed: "method-not-allowed",
    exceptions.ParseError: "malformed",
    exceptions.UnsupportedMediaType: "unsupported-media-type",
    exceptions.NotAcceptable: "not-acceptable",
    exceptions.Throttled: "too-many-attempts",
}


def answer_error(error: Exception, context: dict[str, Any]) -> Response | None:
    """Answer what went wrong as ``{"id", "detail", "fields"}``; None leaves it to Django."""
    if isinstance(error, Refused):
        return refusal(error)
    if isinstance(error, CheckpointError):
        return shape(error.id, str(error), STORE_STATUSES.get(type(error), 410))
    if isinstance(error, RequestDataTooBig):
        return shape("too-large", "The fields of this request are too large.", 413)
    if isinstance(error, SuspiciousOperation):
        return shape("malformed", "The request can't be understood.", 400)
    response = exception_handler(error, context)
    if response is None:
        return None
    if isinstance(error, exceptions.ValidationError):
        fields = dict(flatten(error.detail))
        response.data = body("invalid", " ".join(fields.values()), fields)
    elif isinstance(error, Http404):
        response.data = body("not-found", str(error) or "There is nothing here.")
    elif isinstance(error, PermissionDenied):
        response.data = body("forbidden", str(error) or "You may not do this.")
    elif isinstance(error, exceptions.APIException):
        id = IDS.get(type(error), str(error.default_code).replace("_", "-"))
        response.data = body(id, str(error.detail))
    return response


def refusal(error: Refused) -> Response:
    code = STATUSES.get(type(error), 409 if error.conflict else 400)
    response = shape(error.id, str(error), code, error.fields)
    if isinstance(error, TooManyAttempts):
        response["Retry-After"] = str(error.wait_s)
    return response


def shape(
    id: str, detail: str, code: int = status.HTTP_400_BAD_REQUEST, fields: Any = None
) -> Response:
    return Response(body(id, detail, fields), status=code)


def body(id: str, detail: str, fields: Mapping[str, str] | None = None) -> dict[str, Any]:
    return {"id": id, "detail": detail, "fields": dict(fields or {})}


def flatten(detail: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Answer each wrong field with its sentence; what is wrong as a whole is field ``""``."""
    if isinstance(detail, Mapping):
        for key, value in detail.items():
            name = "" if key == "non_field_errors" else str(key)
            yield from flatten(value, f"{path}.{name}" if path and name else path or name)
    elif isinstance(detail, list) and all(isinstance(item, str) for item in detail):
        yield path, " ".join(str(item) for item in detail)
    elif isinstance(detail, list):
        for index, item in enumerate(detail):
            yield from flatten(item, f"{path}.{index}")
    else:
        yield path, str(detail)
