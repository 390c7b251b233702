"""Tasks of accounts. Each calls the service of its name, and takes ids only."""

from __future__ import annotations

from celery import shared_task
from django.db import transaction

from console.base.accounts import services


@shared_task(name="accounts.send_verification", autoretry_for=(OSError,), retry_backoff=True)
def send_verification(user_id: str) -> None:
    """Sends the mail that verifies an address; tried again while the mail server is away."""
    services.send_verification(user_id=user_id)


@shared_task(name="accounts.send_invitation", autoretry_for=(OSError,), retry_backoff=True)
def send_invitation(organization_id: str, invitation_id: str) -> None:
    """Sends an invitation's mail; tried again while the mail server is away."""
    services.send_invitation(organization_id=organization_id, invitation_id=invitation_id)


@shared_task(name="accounts.purge_address_events")
def purge_address_events() -> None:
    """Forgets what addresses did hours ago."""
    services.purge_address_events()


@shared_task(name="accounts.send_password_reset", autoretry_for=(OSError,), retry_backoff=True)
def send_password_reset(reset_id: str) -> None:
    """Sends the mail that sets a new password; tried again while the mail server is away."""
    with transaction.atomic():
        services.send_password_reset(reset_id=reset_id)


@shared_task(name="accounts.send_security_mail", autoretry_for=(OSError,), retry_backoff=True)
def send_security_mail(user_id: str, about: str) -> None:
    """Tells a person what happened to their account; tried again while the mail server is away."""
    services.send_security_mail(user_id=user_id, about=about)


@shared_task(name="accounts.purge_sign_in")
def purge_sign_in() -> None:
    """Forgets sessions and wrong attempts that have no effect any more."""
    services.purge_sessions()
    services.purge_attempts()


@shared_task(name="accounts.send_closing_mail", autoretry_for=(OSError,), retry_backoff=True)
def send_closing_mail(organization_id: str) -> None:
    """Tells that an organisation was closed; tried again while the mail server is away."""
    services.send_closing_mail(organization_id=organization_id)
