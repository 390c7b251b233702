"""Tasks of accounts. Each calls the service of its name, and takes ids only."""

from __future__ import annotations

from celery import shared_task

from console.accounts import services


@shared_task(name="accounts.send_verification", autoretry_for=(OSError,), retry_backoff=True)
def send_verification(user_id: str) -> None:
    """Sends the mail that verifies an address; tried again while the mail server is away."""
    services.send_verification(user_id=user_id)


@shared_task(name="accounts.purge_address_events")
def purge_address_events() -> None:
    """Forgets what addresses did hours ago."""
    services.purge_address_events()
