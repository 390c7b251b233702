"""The application of accounts."""

from __future__ import annotations

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """Organisations, users, memberships, API keys."""

    name = "console.accounts"
    label = "accounts"

    def ready(self) -> None:
        """Tells the audit log what users and keys are called."""
        from console.accounts import names  # noqa: PLC0415
        from console.audit.names import register_namer  # noqa: PLC0415
        from console.common.actor import ActorKind  # noqa: PLC0415

        register_namer(ActorKind.SESSION, names.users_by_id)
        register_namer(ActorKind.API_KEY, names.keys_by_id)
