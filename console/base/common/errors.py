"""Errors that the API answers.

A `UserError` says that the request cannot be served as it is, and that the caller can change that.
A `PlatformError` says that the fault is ours, and that the same request may work later. An
application subclasses either, with a `code` that never changes, and raises it in its services; one
handler (`console.base.common.api.problems`) renders it as an RFC 9457 problem.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FieldError:
    """What is wrong with one place of the request.

    `pointer` is a JSON pointer into the body (`/name`, `/configs/retention.ms`), or the name of a
    query parameter behind `?`.
    """

    pointer: str
    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class Quota:
    """A published limit that was met: its name, its value, and how much of it is used."""

    name: str
    limit: int
    used: int


class AppError(Exception):
    """An error with a stable code and an HTTP status. Raise one of its subclasses."""

    code: str = "error"
    status: int = 500
    title: str = "Error"
    # Whether what the request wrote before is committed, such as an entry of the audit log.
    keeps_writes: bool = False

    def __init__(
        self,
        detail: str | None = None,
        *,
        errors: Sequence[FieldError] = (),
        quota: Quota | None = None,
        retry_after_s: int | None = None,
        extra: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(detail or self.title)
        self.detail = detail or self.title
        self.errors = tuple(errors)
        self.quota = quota
        self.retry_after_s = retry_after_s
        # Members of the problem document beside the standard ones, such as `operation_id`.
        self.extra = dict(extra or {})


class UserError(AppError):
    """The request is at fault, and the caller can change it or the state that it meets."""

    code = "bad_request"
    status = 400
    title = "The request cannot be served"


class PlatformError(AppError):
    """The service is at fault; the caller can only try again later."""

    code = "internal_error"
    status = 500
    title = "Something went wrong on our side"


class Unavailable(PlatformError):
    """A part that the request needs does not answer; repeat it after `retry_after_s` seconds."""

    code = "unavailable"
    status = 503
    title = "A part of the service does not answer"

    def __init__(self, detail: str | None = None, *, retry_after_s: int = 5) -> None:
        super().__init__(detail, retry_after_s=retry_after_s)


class ValidationFailed(UserError):
    """The body or a parameter is not what the operation takes; `errors` says where."""

    code = "validation_failed"
    status = 422
    title = "The request has invalid values"


class NotAuthenticated(UserError):
    """The request has no credential, or one that is unknown, expired or revoked."""

    code = "not_authenticated"
    status = 401
    title = "Authentication is required"


class PermissionDenied(UserError):
    """The caller's role does not allow it."""

    code = "permission_denied"
    status = 403
    title = "The role does not allow this"


class NotFound(UserError):
    """The resource is absent or another organization's: the two look the same."""

    code = "not_found"
    status = 404
    title = "There is no such resource"


class Conflict(UserError):
    """The resource's current state does not allow the change."""

    code = "conflict"
    status = 409
    title = "The resource's state does not allow this"


class NameTaken(Conflict):
    """The organization, project or cluster has another resource of this kind and name."""

    code = "name_taken"
    title = "The name is taken"


class NameNotConfirmed(UserError):
    """A deletion must be confirmed by the name of what is deleted, and the name is another."""

    code = "name_not_confirmed"
    status = 422
    title = "The name does not confirm it"


class PreconditionFailed(UserError):
    """`If-Match` names another generation than the current one."""

    code = "precondition_failed"
    status = 412
    title = "The resource has changed"


class LimitReached(UserError):
    """A published limit on the number of resources is reached."""

    code = "limit_reached"
    status = 403
    title = "A limit is reached"


class BodyTooLarge(UserError):
    """The request's body is longer than the operation accepts."""

    code = "body_too_large"
    status = 413
    title = "The body is too large"


class AmbiguousLength(UserError):
    """The request says in two ways where its body ends, and a proxy may have believed the other."""

    code = "ambiguous_length"
    title = "The request has both Content-Length and Transfer-Encoding"


class TooManyRequests(UserError):
    """A published limit on how often something may be done; repeat it after `retry_after_s`."""

    code = "too_many_requests"
    status = 429
    title = "Too many requests"
