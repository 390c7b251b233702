"""Renders every error of the API as an RFC 9457 problem document, here and nowhere else."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from django.core.exceptions import PermissionDenied as DjangoPermissionDenied
from django.core.exceptions import RequestDataTooBig
from django.db import OperationalError
from django.http import Http404, HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from rest_framework import exceptions, status
from rest_framework.response import Response

from console.base.common import errors
from console.base.common.requests import current_request_id
from console.base.common.transactions import roll_back

logger = logging.getLogger(__name__)

CONTENT_TYPE = "application/problem+json"
# A name, not an address: nothing is served under it.
TYPE_BASE = "urn:freshet:problem:"


class FrameworkError(errors.UserError):
    """An error that the framework raises itself: malformed JSON, a wrong method or media type."""

    code = "bad_request"
    codes: ClassVar[dict[int, str]] = {
        status.HTTP_400_BAD_REQUEST: "malformed_request",
        status.HTTP_405_METHOD_NOT_ALLOWED: "method_not_allowed",
        status.HTTP_406_NOT_ACCEPTABLE: "not_acceptable",
        status.HTTP_415_UNSUPPORTED_MEDIA_TYPE: "unsupported_media_type",
        status.HTTP_429_TOO_MANY_REQUESTS: "too_many_requests",
    }

    def __init__(self, error: exceptions.APIException) -> None:
        self.status = error.status_code
        self.code = self.codes.get(error.status_code, self.code)
        self.title = str(error.default_detail).split("{", maxsplit=1)[0].strip(" .")
        super().__init__(str(error.detail))


def problem(error: errors.AppError) -> dict[str, Any]:
    """Returns the members of an error's problem document."""
    document: dict[str, Any] = {
        "type": TYPE_BASE + error.code,
        "title": error.title,
        "status": error.status,
        "detail": error.detail,
        "code": error.code,
        "request_id": current_request_id(),
        **error.extra,
    }
    if error.errors:
        document["errors"] = [
            {"pointer": field.pointer, "code": field.code, "detail": field.detail}
            for field in error.errors
        ]
    if error.quota is not None:
        document["quota"] = {
            "name": error.quota.name,
            "limit": error.quota.limit,
            "used": error.quota.used,
        }
    return document


def headers(error: errors.AppError) -> dict[str, str]:
    """Returns the headers of a problem: when to come back, which limit, how to authenticate."""
    values = {"Cache-Control": "no-store"}
    if error.retry_after_s is not None:
        values["Retry-After"] = str(error.retry_after_s)
    if error.quota is not None and error.status == status.HTTP_429_TOO_MANY_REQUESTS:
        # draft-ietf-httpapi-ratelimit-headers-10
        name, remaining = error.quota.name, max(error.quota.limit - error.quota.used, 0)
        values["RateLimit-Policy"] = f'"{name}";q={error.quota.limit}'
        values["RateLimit"] = f'"{name}";r={remaining};t={error.retry_after_s or 0}'
    if error.status == status.HTTP_401_UNAUTHORIZED:
        values["WWW-Authenticate"] = 'Bearer realm="freshet"'
    return values


def handle_error(error: Exception, context: Mapping[str, Any]) -> Response:
    """Answers an error that a view raised. The framework calls it, by Django's settings.

    Rolls back what the request wrote since its last interruption, unless the error says that it
    stays.
    """
    app_error = as_app_error(error)
    if app_error is None or not app_error.keeps_writes:
        roll_back()
    if app_error is None:
        logger.error("request.failed", exc_info=error, extra={"view": str(context.get("view"))})
        app_error = errors.PlatformError()
    elif app_error.status >= status.HTTP_500_INTERNAL_SERVER_ERROR:
        logger.warning("request.unavailable", exc_info=error)
    return Response(
        problem(app_error),
        status=app_error.status,
        headers=headers(app_error),
        content_type=CONTENT_TYPE,
    )


def problem_response(error: errors.AppError) -> JsonResponse:
    """Returns an error's answer for code outside of Django REST framework."""
    return JsonResponse(
        problem(error), status=error.status, headers=headers(error), content_type=CONTENT_TYPE
    )


def as_app_error(error: Exception) -> errors.AppError | None:  # noqa: PLR0911 - one each
    """Converts an error of Django or the framework to ours; returns None for any other error."""
    match error:
        case errors.AppError():
            return error
        case exceptions.ValidationError():
            return errors.ValidationFailed(errors=field_errors(error))
        case Http404() | exceptions.NotFound():
            return errors.NotFound()
        case exceptions.NotAuthenticated() | exceptions.AuthenticationFailed():
            return errors.NotAuthenticated()
        case DjangoPermissionDenied() | exceptions.PermissionDenied():
            return errors.PermissionDenied(_detail_of(error))
        case RequestDataTooBig():
            return errors.BodyTooLarge()
        case exceptions.APIException():
            return FrameworkError(error)
        case OperationalError():
            return errors.Unavailable("The database does not answer.")
        case _:
            return None


def _detail_of(error: Exception) -> str | None:
    return str(error.detail) if isinstance(error, exceptions.APIException) else None


def field_errors(error: exceptions.ValidationError) -> list[errors.FieldError]:
    """Returns what a validation error of the framework says, with JSON pointers into the body."""
    return list(_field_errors(error.get_full_details(), ""))


def _field_errors(details: Any, pointer: str) -> Iterator[errors.FieldError]:
    """Yields the framework's nested details one by one, with JSON pointers into the body."""
    match details:
        case {"message": message, "code": code} if isinstance(code, str):
            yield errors.FieldError(pointer or "/", code, str(message))
        case Mapping():
            for name, inner in details.items():
                whole = name == "non_field_errors"
                place = pointer if whole else f"{pointer}/{escape_name(name)}"
                yield from _field_errors(inner, place)
        case list():
            # A list has either details of its members, which are mappings by field and get an
            # index in the pointer, or several details of one field, which do not.
            for index, inner in enumerate(details):
                leaf = not isinstance(inner, Mapping) or {"message", "code"} == set(inner)
                yield from _field_errors(inner, pointer if leaf else f"{pointer}/{index}")
        case _:
            yield errors.FieldError(pointer or "/", "invalid", str(details))


def escape_name(name: object) -> str:
    """Escapes a member's name for a JSON pointer (RFC 6901)."""
    return str(name).replace("~", "~0").replace("/", "~1")


@csrf_exempt
def not_found(request: HttpRequest, exception: Exception | None = None) -> JsonResponse:
    """Answers paths that no route matches. No method needs a CSRF token: nothing is changed."""
    return problem_response(errors.NotFound())


def bad_request(request: HttpRequest, exception: Exception | None = None) -> JsonResponse:
    """Answers requests that Django refuses itself, such as those for an unknown host."""
    return problem_response(errors.UserError())


def permission_denied(request: HttpRequest, exception: Exception | None = None) -> JsonResponse:
    """Answers requests that Django forbids itself."""
    return problem_response(errors.PermissionDenied())


def server_error(request: HttpRequest) -> JsonResponse:
    """Answers errors outside of the API's views.

    A database that does not answer raises here: the transaction begins before the view runs and
    ends after it.
    """
    error = sys.exc_info()[1]
    app_error = as_app_error(error) if isinstance(error, Exception) else None
    return problem_response(app_error or errors.PlatformError())


def csrf_failure(request: HttpRequest, reason: str = "") -> JsonResponse:
    """Answers requests with a missing or wrong CSRF token."""
    return problem_response(errors.PermissionDenied(reason or None))
