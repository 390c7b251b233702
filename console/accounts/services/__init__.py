"""The only writers of accounts' rows, and who a credential belongs to."""

from console.accounts.services.access import renew_actor
from console.accounts.services.admission import admit
from console.accounts.services.api_keys import CreatedKey, create_api_key, revoke_api_key
from console.accounts.services.attempts import purge_attempts, remember_device
from console.accounts.services.authentication import actor_of_user, authenticate_key
from console.accounts.services.closing import close_organization, send_closing_mail
from console.accounts.services.limits import purge_address_events
from console.accounts.services.memberships import organizations_of
from console.accounts.services.organizations import (
    billing_addresses,
    set_produce_suspension,
    set_standing,
    update_organization,
)
from console.accounts.services.passwords import (
    change_password,
    request_password_reset,
    reset_password,
    send_password_reset,
)
from console.accounts.services.people import send_security_mail
from console.accounts.services.second_factors import (
    Enrolment,
    begin_enrolment,
    confirm_enrolment,
    has_second_factor,
    remove_second_factor,
    renew_recovery_codes,
    require_code,
    reset_second_factor,
)
from console.accounts.services.sessions import (
    SESSION_ORGANIZATION,
    begin_session,
    current_session,
    end_session,
    end_sessions,
    purge_sessions,
    sessions_of,
    sign_out,
    switch_organization,
)
from console.accounts.services.signing_in import sign_in
from console.accounts.services.signup import SignedUp, sign_up
from console.accounts.services.support import admit_everybody, reopen_organization
from console.accounts.services.verification import (
    request_verification,
    send_verification,
    verify_email,
)

__all__ = [
    "SESSION_ORGANIZATION",
    "CreatedKey",
    "Enrolment",
    "SignedUp",
    "actor_of_user",
    "admit",
    "admit_everybody",
    "authenticate_key",
    "begin_enrolment",
    "begin_session",
    "billing_addresses",
    "change_password",
    "close_organization",
    "confirm_enrolment",
    "create_api_key",
    "current_session",
    "end_session",
    "end_sessions",
    "has_second_factor",
    "organizations_of",
    "purge_address_events",
    "purge_attempts",
    "purge_sessions",
    "remember_device",
    "remove_second_factor",
    "renew_actor",
    "renew_recovery_codes",
    "reopen_organization",
    "request_password_reset",
    "request_verification",
    "require_code",
    "reset_password",
    "reset_second_factor",
    "revoke_api_key",
    "send_closing_mail",
    "send_password_reset",
    "send_security_mail",
    "send_verification",
    "sessions_of",
    "set_produce_suspension",
    "set_standing",
    "sign_in",
    "sign_out",
    "sign_up",
    "switch_organization",
    "update_organization",
    "verify_email",
]
