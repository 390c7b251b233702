"""The values of limits that apply, and requests to raise them."""

from console.base.limits.services.listing import LimitUse, list_limits
from console.base.limits.services.requests import grant_limit, refuse_limit, request_limit
from console.base.limits.services.values import check_room, limit_of, limits_of, require_room

__all__ = [
    "LimitUse",
    "check_room",
    "grant_limit",
    "limit_of",
    "limits_of",
    "list_limits",
    "refuse_limit",
    "request_limit",
    "require_room",
]
