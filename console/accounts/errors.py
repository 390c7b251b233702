"""Errors of accounts. Codes never change."""

from __future__ import annotations

from console.common.errors import NotAuthenticated, PermissionDenied, UserError


class RoleTooHigh(PermissionDenied):
    """Nobody hands out more than they have."""

    code = "role_too_high"
    title = "The role is higher than the caller's own"


class ExpiryInThePast(UserError):
    """A key that could never be used."""

    code = "expiry_in_the_past"
    status = 422
    title = "The expiry lies in the past"


class EmailTaken(UserError):
    """There is an account with this address."""

    code = "email_taken"
    status = 409
    title = "There is an account with this address"


class InvalidCredentials(NotAuthenticated):
    """Address or password is wrong; which of them is not said."""

    code = "invalid_credentials"
    title = "Address or password is wrong"


class ResetTokenInvalid(UserError):
    """The link was used, the password or a sign-in came in between, it is too old, or not ours."""

    code = "reset_token_invalid"
    status = 422
    title = "The link is not valid any more; ask for another one"


class CurrentPasswordWrong(UserError):
    """Who changes the password must know it."""

    code = "current_password_wrong"
    status = 422
    title = "The current password is wrong"


class TokenInvalid(UserError):
    """The link's token is not one that we made, or not for the address as it is now."""

    code = "verification_token_invalid"
    status = 422
    title = "The link is not valid"


class TokenExpired(UserError):
    """The link's token was good once."""

    code = "verification_token_expired"
    status = 422
    title = "The link has expired"
