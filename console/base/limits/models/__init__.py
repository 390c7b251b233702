"""Rows of limits."""

from console.base.limits.models.grant import LimitGrant
from console.base.limits.models.request import LimitRequest

__all__ = ["LimitGrant", "LimitRequest"]
