"""The functions that write accounts' rows, and those that find whose a credential is."""

from console.base.accounts.services.access import renew_actor
from console.base.accounts.services.address_mails import (
    request_password_reset,
    request_sign_in_link,
    send_password_reset,
)
from console.base.accounts.services.admission import admit_actor
from console.base.accounts.services.api_keys import (
    CreatedKey,
    create_api_key,
    revoke_api_key,
    rotate_api_key,
)
from console.base.accounts.services.attempts import purge_attempts, remember_device
from console.base.accounts.services.authentication import actor_of_user, authenticate_key
from console.base.accounts.services.closing import close_organization, send_closing_mail
from console.base.accounts.services.exporting import export_organization
from console.base.accounts.services.factors import has_second_factor
from console.base.accounts.services.forfeiting import forfeit_clusters, redeem_clusters
from console.base.accounts.services.invitations import (
    Accepted,
    accept_invitation,
    create_invitation,
    resend_invitation,
    revoke_invitation,
    send_invitation,
)
from console.base.accounts.services.limits import purge_address_events
from console.base.accounts.services.members import remove_member, update_member
from console.base.accounts.services.memberships import organizations_of
from console.base.accounts.services.organizations import (
    billing_addresses,
    managing_addresses,
    require_verified,
    set_account_status,
    update_organization,
)
from console.base.accounts.services.passwords import change_password, reset_password
from console.base.accounts.services.people import send_security_mail
from console.base.accounts.services.projects import (
    create_default_project,
    create_project,
    delete_project,
    project_for,
    update_project,
)
from console.base.accounts.services.role_bindings import create_role_binding, delete_role_binding
from console.base.accounts.services.second_factors import (
    Enrolment,
    begin_enrolment,
    confirm_enrolment,
    remove_second_factor,
    renew_recovery_codes,
    require_code,
    reset_second_factor,
)
from console.base.accounts.services.service_accounts import (
    create_service_account,
    delete_service_account,
    update_service_account,
)
from console.base.accounts.services.sessions import (
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
from console.base.accounts.services.signing_in import sign_in
from console.base.accounts.services.signup import SignedUp, sign_up
from console.base.accounts.services.staff import set_staff
from console.base.accounts.services.support import admit_everybody, reopen_organization
from console.base.accounts.services.traffic import set_traffic_limit
from console.base.accounts.services.verification import (
    request_verification,
    send_verification,
    verify_email,
)

__all__ = [
    "SESSION_ORGANIZATION",
    "Accepted",
    "CreatedKey",
    "Enrolment",
    "SignedUp",
    "accept_invitation",
    "actor_of_user",
    "admit_actor",
    "admit_everybody",
    "authenticate_key",
    "begin_enrolment",
    "begin_session",
    "billing_addresses",
    "change_password",
    "close_organization",
    "confirm_enrolment",
    "create_api_key",
    "create_default_project",
    "create_invitation",
    "create_project",
    "create_role_binding",
    "create_service_account",
    "current_session",
    "delete_project",
    "delete_role_binding",
    "delete_service_account",
    "end_session",
    "end_sessions",
    "export_organization",
    "forfeit_clusters",
    "has_second_factor",
    "managing_addresses",
    "organizations_of",
    "project_for",
    "purge_address_events",
    "purge_attempts",
    "purge_sessions",
    "redeem_clusters",
    "remember_device",
    "remove_member",
    "remove_second_factor",
    "renew_actor",
    "renew_recovery_codes",
    "reopen_organization",
    "request_password_reset",
    "request_sign_in_link",
    "request_verification",
    "require_code",
    "require_verified",
    "resend_invitation",
    "reset_password",
    "reset_second_factor",
    "revoke_api_key",
    "revoke_invitation",
    "rotate_api_key",
    "send_closing_mail",
    "send_invitation",
    "send_password_reset",
    "send_security_mail",
    "send_verification",
    "sessions_of",
    "set_account_status",
    "set_staff",
    "set_traffic_limit",
    "sign_in",
    "sign_out",
    "sign_up",
    "switch_organization",
    "update_member",
    "update_organization",
    "update_project",
    "update_service_account",
    "verify_email",
]
