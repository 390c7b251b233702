"""Errors of limits. Codes never change."""

from __future__ import annotations

from console.base.common.errors import Conflict, UserError


class LimitNotRaisable(UserError):
    """The limit cannot be raised: it is the same for everybody, or the service supports no more."""

    code = "limit_not_raisable"
    status = 422
    title = "This limit cannot be raised"


class LimitNotHigher(UserError):
    """The requested value is not above the current limit."""

    code = "limit_not_higher"
    status = 422
    title = "The limit is that high already"


class LimitRequestOpen(Conflict):
    """A request for the same limit is open; `limit_request_id` in the problem names it."""

    code = "limit_request_open"
    title = "A request for this limit is open"


class LimitRequestAnswered(Conflict):
    """The request was granted or refused already, and is answered only once."""

    code = "limit_request_answered"
    title = "The request was answered"
