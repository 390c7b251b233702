"""Celery tasks of accounts. Each takes ids only, and calls the service function of its name."""

from __future__ import annotations

from celery import shared_task

from console.base.accounts import services
from console.base.common.mail import mail_task


@mail_task("accounts.send_verification")
def send_verification(user_id: str) -> None:
    """Sends the mail that verifies an address; retried while the mail server does not answer."""
    services.send_verification(user_id=user_id)


@mail_task("accounts.send_invitation")
def send_invitation(organization_id: str, invitation_id: str) -> None:
    """Sends an invitation's mail; retried while the mail server does not answer."""
    services.send_invitation(organization_id=organization_id, invitation_id=invitation_id)


@shared_task(name="accounts.purge_address_events")
def purge_address_events() -> None:
    """Deletes events of addresses that no limit counts any more."""
    services.purge_address_events()


@mail_task("accounts.send_password_reset")
def send_password_reset(reset_id: str) -> None:
    """Sends the mail that sets a new password; retried while the mail server does not answer."""
    services.send_password_reset(reset_id=reset_id)


@mail_task("accounts.send_security_mail")
def send_security_mail(user_id: str, about: str) -> None:
    """Mails a person about their account; retried while the mail server does not answer."""
    services.send_security_mail(user_id=user_id, about=about)


@shared_task(name="accounts.purge_sign_in")
def purge_sign_in() -> None:
    """Deletes expired sessions, and counts of wrong attempts that no longer matter."""
    services.purge_sessions()
    services.purge_attempts()


@mail_task("accounts.send_closing_mail")
def send_closing_mail(organization_id: str) -> None:
    """Mails that an organization was closed; retried while the mail server does not answer."""
    services.send_closing_mail(organization_id=organization_id)
