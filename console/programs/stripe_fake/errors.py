"""Errors as Stripe answers them: `{"error": {"type", "code", "message", "param", …}}`."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

DOCUMENTATION = "https://stripe.com/docs/error-codes"


class ApiError(Exception):
    """An answer with status 400 or more.

    `details`: further members of the error, such as `decline_code` or `payment_intent`.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        kind: str = "invalid_request_error",
        code: str | None = None,
        param: str | None = None,
        details: Json | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.code = code
        self.param = param
        self.details = details or {}
        self.should_retry: bool | None = None

    def advising(self, *, retry: bool) -> ApiError:
        """Returns the error with Stripe's advice to its libraries: to try again, or not to."""
        self.should_retry = retry
        return self

    def body(self, request_id: str) -> Json:
        """Returns the answer's JSON."""
        error: Json = {"message": str(self), "type": self.kind}
        if self.code is not None:
            error["code"] = self.code
            error["doc_url"] = f"{DOCUMENTATION}/{self.code.replace('_', '-')}"
        if self.param is not None:
            error["param"] = self.param
        error["request_log_url"] = f"https://dashboard.stripe.com/test/logs/{request_id}"
        return {"error": {**error, **self.details}}


class CardDeclined(ApiError):
    """A card that its issuer declined: the attempt is kept, as is this answer."""

    def __init__(
        self, message: str, *, code: str, decline_code: str, details: Json | None = None
    ) -> None:
        super().__init__(
            402,
            message,
            kind="card_error",
            code=code,
            details={"decline_code": decline_code, **(details or {})},
        )

    def as_last_error(self, method: Json) -> Json:
        """Returns the intent's `last_payment_error` or `last_setup_error`."""
        error: Json = self.body("")["error"]
        return {
            **{name: error[name] for name in ("code", "decline_code", "doc_url", "message")},
            "payment_method": method,
            "type": self.kind,
        }


class ParameterError(ApiError):
    """A parameter that is unknown, missing or of the wrong form.

    The endpoint did not begin, so the answer is not kept for the idempotency key.
    """

    def __init__(self, message: str, *, code: str | None = None, param: str | None = None) -> None:
        super().__init__(400, message, code=code, param=param)


def missing_object(noun: str, object_id: str, param: str = "id") -> ApiError:
    """Returns the answer for an id that names nothing."""
    status = 404 if param in {"id", "intent"} else 400
    return ApiError(status, f"No such {noun}: '{object_id}'", code="resource_missing", param=param)
