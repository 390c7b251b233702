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
    """The change concerns rights that the caller lacks: nobody grants or takes what they lack."""

    code = "role_too_high"
    title = "The role is higher than the caller's own"


class ExpiryInThePast(UserError):
    """The key would have expired before its first use."""

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
    """The link was used or is too old, the account has changed since, or we did not make it.

    A new password or a sign-in since the mail was sent makes its link invalid.
    """

    code = "reset_token_invalid"
    status = 422
    title = "The link is not valid any more; ask for another one"


class CurrentPasswordWrong(UserError):
    """The current password, which a signed-in person gives again, is wrong."""

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
    """A signed-in person gave a wrong or used code: 422, because the session itself is valid."""

    status = 422


class SecondFactorExists(Conflict):
    """The account has a second factor; remove it to add another one."""

    code = "second_factor_exists"
    title = "The account has a second factor"


class SecondFactorMissing(Conflict):
    """The account has no second factor, and no enrolment of one has begun."""

    code = "second_factor_missing"
    title = "The account has no second factor"


class AddressNotAllowed(PermissionDenied):
    """The request came from an address that is in none of the organization's allowed networks."""

    code = "address_not_allowed"
    title = "The organization does not allow requests from this address"
    keeps_writes = True


class SecondFactorRequired(PermissionDenied):
    """The organization requires a second factor of its people, and the session showed none."""

    code = "second_factor_required"
    title = "The organization requires a second factor"


class StaffSecondFactorRequired(SecondFactorRequired):
    """Staff see every organization, so their sessions need a second factor."""

    title = "Staff need a second factor"

    def __init__(self) -> None:
        super().__init__(
            "Add one under Account, Sign-in (POST /session/totp): this session has it then. If "
            "you have one, sign out, and sign in again with one of its codes."
        )


class OrganizationClosed(PermissionDenied):
    """The organization was closed: it can be read, its invoices above all, and not changed."""

    code = "organization_closed"
    title = "The organization is closed"


class PersonRequired(PermissionDenied):
    """Only a signed-in person may do this, never a program with an API key."""

    code = "person_required"
    title = "Only a person who is signed in may do this"


class WouldLockOut(UserError):
    """After the change the caller could not come in any more, and so could not take it back."""

    code = "would_lock_out"
    status = 422
    title = "The change would lock out who makes it; repeat with force=true to make it all the same"


class TokenInvalid(UserError):
    """We did not make the link's token, or the user's address has changed since."""

    code = "verification_token_invalid"
    status = 422
    title = "The link is not valid"


class TokenExpired(UserError):
    """The link's token was valid and has expired."""

    code = "verification_token_expired"
    status = 422
    title = "The link has expired"


class UnknownProject(UserError):
    """No project has this id, or the caller may not see it: the two look the same."""

    code = "unknown_project"
    status = 422
    title = "There is no such project"


class ProjectForbidden(PermissionDenied):
    """The caller may see the project, but may not add anything to it."""

    title = "The role in this project does not allow this"


class DefaultProjectStays(Conflict):
    """The default project cannot be deleted: every organization has one."""

    code = "default_project"
    title = "The default project stays"


class ProjectNotEmpty(Conflict):
    """Clusters are left in the project."""

    code = "project_not_empty"
    title = "The project has clusters"


class UnknownServiceAccount(UserError):
    """No service account of the organization has this id."""

    code = "unknown_service_account"
    status = 422
    title = "There is no such service account"


class TwoKeysAlready(Conflict):
    """A service account has at most two active keys: one, and a second one while it is rotated."""

    code = "two_keys_already"
    title = "The service account has two active keys"


class KeyNotActive(Conflict):
    """A revoked or expired key has no rights to pass on."""

    code = "key_not_active"
    title = "The key is revoked or expired"


class UnknownPrincipal(UserError):
    """No member and no service account of the organization has this id."""

    code = "unknown_principal"
    status = 422
    title = "There is no such principal"


class AlreadyBound(Conflict):
    """The principal already has this role in the project."""

    code = "already_bound"
    title = "The principal has this role already"


class LastOwner(Conflict):
    """The last owner stays: without one nobody could close the organization or appoint an owner."""

    code = "last_owner"
    title = "It is the organization's last owner"


class AlreadyMember(Conflict):
    """The invited address, or the person who accepts, belongs to a member already."""

    code = "already_member"
    title = "This person is a member already"


class AlreadyInvited(Conflict):
    """An invitation of this address is pending; it can be sent again instead."""

    code = "already_invited"
    title = "This address is invited already"


class NotVerified(PermissionDenied):
    """Neither an owner of the organization nor, for their own account, the person has done it."""

    code = "not_verified"
    title = "Confirm your address first"


class AddressNotProved(NotVerified):
    """The person has not proved to own their address, so their account can have no second factor.

    Whoever proves it gets the account, also if somebody else signed up with the address.
    """

    def __init__(self) -> None:
        super().__init__(
            "Open the link of the mail that you got at sign-up; then add a second factor."
        )


class InvitationClosed(Conflict):
    """The invitation was accepted or revoked, or a later one replaced it."""

    code = "invitation_closed"
    title = "The invitation is closed"


class InvitationInvalid(UserError):
    """No pending invitation has this token.

    An unknown token and one whose invitation was accepted, revoked or sent again look the same.
    """

    code = "invitation_invalid"
    status = 422
    title = "The invitation is not valid"


class SignUpNotShown(UserError):
    """The link proves that its reader has the address, and not that they signed up with it.

    The account's session or its password shows that. Who has neither sets a new password by mail.
    """

    code = "sign_up_not_shown"
    status = 422
    title = "Give the password of the sign-up, or open the link where you are signed in"


class InvitationExpired(UserError):
    """The invitation's token was valid and has expired."""

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
    """An invitation was accepted for a new account, and the request has no password for it."""

    title = "A new account needs a password"
