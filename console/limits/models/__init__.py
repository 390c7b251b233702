"""Rows of limits."""

from console.limits.models.grant import LimitGrant
from console.limits.models.request import LimitRequest

__all__ = ["LimitGrant", "LimitRequest"]
