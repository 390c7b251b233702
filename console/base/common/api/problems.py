"""Every error of the API as an RFC 9457 problem document. The one place where they are rendered."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from django.core.exceptions import PermissionDenied as DjangoPermissionDenied
from django.core.exceptions import RequestDataTooBig
from django.db import OperationalError, transaction
from django.http import Http404, HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from rest_framework import exceptions, status
from rest_framework.response import Response
from rest_framework.views import set_rollback

from console.base.common import errors
from console.base.common.requests import current_request_id

logger = logging.getLogger(__name__)

CONTENT_TYPE = "application/problem+json"
# A name, not an address: nothing is served under it.
TYPE_BASE = "urn:freshet:problem:"


class FrameworkError(errors.UserError):
    """What the framework refuses by itself: malformed JSON, a wrong method or media type."""

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
    """The members of an error's problem document."""
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
            {"pointer": each.pointer, "code": each.code, "detail": each.detail}
            for each in error.errors
        ]
    if error.quota is not None:
        document["quota"] = {
            "name": error.quota.name,
            "limit": error.quota.limit,
            "used": error.quota.used,
        }
    return document


def headers(error: errors.AppError) -> dict[str, str]:
    """Headers that go with a problem: when to come back, which limit, how to authenticate."""
    given = {"Cache-Control": "no-store"}
    if error.retry_after_s is not None:
        given["Retry-After"] = str(error.retry_after_s)
    if error.quota is not None and error.status == status.HTTP_429_TOO_MANY_REQUESTS:
        # draft-ietf-httpapi-ratelimit-headers-10
        name, left = error.quota.name, max(error.quota.limit - error.quota.used, 0)
        given["RateLimit-Policy"] = f'"{name}";q={error.quota.limit}'
        given["RateLimit"] = f'"{name}";r={left};t={error.retry_after_s or 0}'
    if error.status == status.HTTP_401_UNAUTHORIZED:
        given["WWW-Authenticate"] = 'Bearer realm="freshet"'
    return given


def handle(error: Exception, context: Mapping[str, Any]) -> Response:
    """The framework's exception handler. Takes the transaction back, unless the error keeps it."""
    known = as_app_error(error)
    if known is None or not known.keeps_writes:
        set_rollback()
    if known is None:
        logger.error("request.failed", exc_info=error, extra={"view": str(context.get("view"))})
        known = errors.PlatformError()
    elif known.status >= status.HTTP_500_INTERNAL_SERVER_ERROR:
        logger.warning("request.unavailable", exc_info=error)
    return Response(
        problem(known), status=known.status, headers=headers(known), content_type=CONTENT_TYPE
    )


def problem_response(error: errors.AppError) -> JsonResponse:
    """A problem for what is outside of Django REST framework."""
    return JsonResponse(
        problem(error), status=error.status, headers=headers(error), content_type=CONTENT_TYPE
    )


def as_app_error(error: Exception) -> errors.AppError | None:  # noqa: PLR0911 - one each
    """Puts Django's and the framework's errors into ours; None for what nobody foresaw."""
    match error:
        case errors.AppError():
            return error
        case exceptions.ValidationError():
            return errors.ValidationFailed(errors=list(_field_errors(error.get_full_details(), "")))
        case Http404() | exceptions.NotFound():
            return errors.NotFound()
        case exceptions.NotAuthenticated() | exceptions.AuthenticationFailed():
            return errors.NotAuthenticated()
        case DjangoPermissionDenied() | exceptions.PermissionDenied():
            return errors.PermissionDenied(_detail(error))
        case RequestDataTooBig():
            return errors.BodyTooLarge()
        case exceptions.APIException():
            return FrameworkError(error)
        case OperationalError():
            return errors.Unavailable("The database does not answer.")
        case _:
            return None


def _detail(error: Exception) -> str | None:
    return str(error.detail) if isinstance(error, exceptions.APIException) else None


def _field_errors(details: Any, pointer: str) -> Iterator[errors.FieldError]:
    """The framework's nested details, flattened to JSON pointers into the body."""
    match details:
        case {"message": message, "code": code} if isinstance(code, str):
            yield errors.FieldError(pointer or "/", code, str(message))
        case Mapping():
            for name, inner in details.items():
                whole = name == "non_field_errors"
                yield from _field_errors(inner, pointer if whole else f"{pointer}/{_escape(name)}")
        case list():
            # Details of a list's members come as mappings of fields, those of a field as leaves.
            for index, inner in enumerate(details):
                leaf = not isinstance(inner, Mapping) or {"message", "code"} == set(inner)
                yield from _field_errors(inner, pointer if leaf else f"{pointer}/{index}")
        case _:
            yield errors.FieldError(pointer or "/", "invalid", str(details))


def _escape(name: object) -> str:
    """A member's name within a JSON pointer (RFC 6901)."""
    return str(name).replace("~", "~0").replace("/", "~1")


@csrf_exempt
@transaction.non_atomic_requests
def not_found(request: HttpRequest, exception: Exception | None = None) -> JsonResponse:
    """Django's handler of addresses that nothing serves. Any method gets it: it changes nothing."""
    del request, exception
    return problem_response(errors.NotFound())


def bad_request(request: HttpRequest, exception: Exception | None = None) -> JsonResponse:
    """Django's handler of requests that it refuses itself, such as of an unknown host."""
    del request, exception
    return problem_response(errors.UserError())


def permission_denied(request: HttpRequest, exception: Exception | None = None) -> JsonResponse:
    """Django's handler of what it forbids itself."""
    del request, exception
    return problem_response(errors.PermissionDenied())


def server_error(request: HttpRequest) -> JsonResponse:
    """Django's handler of errors outside of the API's views.

    A database that is away shows before the view: its transaction does not begin.
    """
    del request
    error = sys.exc_info()[1]
    known = as_app_error(error) if isinstance(error, Exception) else None
    return problem_response(known or errors.PlatformError())


def csrf_failure(request: HttpRequest, reason: str = "") -> JsonResponse:
    """Django's handler of a missing or wrong CSRF token."""
    del request
    return problem_response(errors.PermissionDenied(reason or None))
