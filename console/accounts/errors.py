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


class AddressNotAllowed(PermissionDenied):
    """The organisation lets nobody in from where the request came from."""

    code = "address_not_allowed"
    title = "The organisation does not allow requests from this address"
    keeps_writes = True


class SecondFactorRequired(PermissionDenied):
    """The organisation asks its people for a second factor, and the session showed none."""

    code = "second_factor_required"
    title = "The organisation requires a second factor"


class OrganizationClosed(PermissionDenied):
    """Its invoices can be read; nothing can be changed any more."""

    code = "organization_closed"
    title = "The organisation is closed"


class PersonRequired(PermissionDenied):
    """Only a signed-in person does this, never a program with a key."""

    code = "person_required"
    title = "Only a person who is signed in may do this"


class NameNotConfirmed(UserError):
    """What cannot be taken back needs the name."""

    code = "name_not_confirmed"
    status = 422
    title = "The name is not the organisation's"


class WouldLockOut(UserError):
    """The caller could not take the change back."""

    code = "would_lock_out"
    status = 422
    title = "The change would lock out who makes it; repeat with force=true to make it all the same"


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
