"""Errors of accounts. Codes never change."""

from __future__ import annotations

from console.common.errors import Conflict, NotAuthenticated, PermissionDenied, UserError


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


class CodeRequired(NotAuthenticated):
    """Address and password are right, and the account has a second factor."""

    code = "code_required"
    title = "A code of the authenticator app is required"


class CodeWrong(NotAuthenticated):
    """Address and password are right, and the code is not, or it was used before."""

    code = "code_wrong"
    title = "The code is wrong, or was used before"


class SecondFactorCodeWrong(UserError):
    """The same, of somebody who is signed in."""

    code = "code_wrong"
    status = 422
    title = "The code is wrong, or was used before"


class SecondFactorExists(Conflict):
    """There is one already; remove it to have another."""

    code = "second_factor_exists"
    title = "The account has a second factor"


class SecondFactorMissing(Conflict):
    """There is none, or its enrolment did not begin."""

    code = "second_factor_missing"
    title = "The account has no second factor"


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
