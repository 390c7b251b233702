"""Errors of accounts. Codes never change."""

from __future__ import annotations

from console.common.errors import PermissionDenied, UserError


class RoleTooHigh(PermissionDenied):
    """Nobody hands out more than they have."""

    code = "role_too_high"
    title = "The role is higher than the caller's own"


class ExpiryInThePast(UserError):
    """A key that could never be used."""

    code = "expiry_in_the_past"
    status = 422
    title = "The expiry lies in the past"
