"""Errors of accounts. Codes never change."""

from __future__ import annotations

from console.base.common.errors import (
    Conflict,
    NotAuthenticated,
    PermissionDenied,
    UserError,
    ValidationFailed,
)


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


class SecondFactorCodeWrong(CodeWrong):
    """The same, of somebody who is signed in."""

    status = 422


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


class StaffSecondFactorRequired(SecondFactorRequired):
    """Who runs the service sees every organisation: a password alone is not enough."""

    title = "Staff need a second factor"

    def __init__(self) -> None:
        super().__init__(
            "Add one under Account, Sign-in (POST /session/totp): this session has it then. Where "
            "you have one, sign out, and in again with a code of it."
        )


class OrganizationClosed(PermissionDenied):
    """Its invoices can be read; nothing can be changed any more."""

    code = "organization_closed"
    title = "The organisation is closed"


class PersonRequired(PermissionDenied):
    """Only a signed-in person does this, never a program with a key."""

    code = "person_required"
    title = "Only a person who is signed in may do this"


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


class UnknownProject(UserError):
    """There is none with this id, or none that the caller may see: the two look the same."""

    code = "unknown_project"
    status = 422
    title = "There is no such project"


class ProjectForbidden(PermissionDenied):
    """The caller sees the project and may put nothing into it."""

    title = "The role in this project does not allow this"


class DefaultProjectStays(Conflict):
    """Every organisation has one."""

    code = "default_project"
    title = "The default project stays"


class ProjectNotEmpty(Conflict):
    """Clusters are left in the project."""

    code = "project_not_empty"
    title = "The project has clusters"


class UnknownServiceAccount(UserError):
    """There is none with this id in the organisation."""

    code = "unknown_service_account"
    status = 422
    title = "There is no such service account"


class TwoKeysAlready(Conflict):
    """A service account has a key, and while it is rotated a second one."""

    code = "two_keys_already"
    title = "The service account has two active keys"


class KeyNotActive(Conflict):
    """A revoked or expired key has no rights to pass on."""

    code = "key_not_active"
    title = "The key is revoked or expired"


class UnknownPrincipal(UserError):
    """No member and no service account of the organisation has this id."""

    code = "unknown_principal"
    status = 422
    title = "There is no such principal"


class AlreadyBound(Conflict):
    """The principal has this role in the project."""

    code = "already_bound"
    title = "The principal has this role already"


class LastOwner(Conflict):
    """An organisation without an owner could not be closed by anybody, nor get another one."""

    code = "last_owner"
    title = "It is the organisation's last owner"


class AlreadyMember(Conflict):
    """The address belongs to a member."""

    code = "already_member"
    title = "This person is a member already"


class AlreadyInvited(Conflict):
    """An invitation is pending: it can be sent anew."""

    code = "already_invited"
    title = "This address is invited already"


class NotVerified(PermissionDenied):
    """None of the organisation's owners has confirmed an address."""

    code = "not_verified"
    title = "Confirm your address first"


class InvitationClosed(Conflict):
    """It was accepted or revoked, or another one took its place."""

    code = "invitation_closed"
    title = "The invitation is closed"


class InvitationInvalid(UserError):
    """No pending invitation has this token: unknown, accepted, revoked and sent anew look alike."""

    code = "invitation_invalid"
    status = 422
    title = "The invitation is not valid"


class InvitationExpired(UserError):
    """The token was good once."""

    code = "invitation_expired"
    status = 422
    title = "The invitation has expired"


class InvitedAnother(Conflict):
    """The signed-in person's address is not the invited one."""

    code = "invited_another_address"
    title = "The invitation is for another address"


class AccountExists(Conflict):
    """The invited address has an account: its owner signs in and accepts then."""

    code = "account_exists"
    title = "Sign in to accept"


class PasswordRequired(ValidationFailed):
    """A new account needs one."""

    title = "A new account needs a password"
