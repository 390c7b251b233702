"""Errors of limits. Codes never change."""

from __future__ import annotations

from console.base.common.errors import Conflict, UserError


class LimitNotRaisable(UserError):
    """The limit is the same for everybody."""

    code = "limit_not_raisable"
    status = 422
    title = "This limit cannot be raised"


class LimitNotHigher(UserError):
    """More is asked for only above what there is."""

    code = "limit_not_higher"
    status = 422
    title = "The limit is that high already"


class LimitRequestOpen(Conflict):
    """The same limit was asked for, and there is no answer yet; `limit_request_id` names it."""

    code = "limit_request_open"
    title = "A request for this limit is open"


class LimitRequestAnswered(Conflict):
    """A request is answered once."""

    code = "limit_request_answered"
    title = "The request was answered"
