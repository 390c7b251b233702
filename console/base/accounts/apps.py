"""The application of accounts."""

from __future__ import annotations

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """Organizations, users, memberships, API keys."""

    name = "console.base.accounts"
    label = "accounts"

    def ready(self) -> None:
        """Registers what other packages ask of accounts.

        These are the names of actors and targets for the audit log, how much of each limit is used,
        and the people in an organization's archive.
        """
        from console.base.accounts import models, names  # noqa: PLC0415
        from console.base.accounts.services import usage  # noqa: PLC0415
        from console.base.accounts.services.archive import archived_people  # noqa: PLC0415
        from console.base.audit.names import (  # noqa: PLC0415
            names_in,
            register_namer,
            register_target_namer,
        )
        from console.base.common.actor import ActorKind  # noqa: PLC0415
        from console.base.common.exports import register_source  # noqa: PLC0415
        from console.base.limits.usage import register_usage  # noqa: PLC0415

        register_source("people", archived_people)
        register_namer(ActorKind.SESSION, names.users_by_id)
        register_namer(ActorKind.API_KEY, names.keys_by_id)
        for target_type, namer in (
            ("user", names.users_by_id),
            ("api_key", names.keys_by_id),
            ("member", names_in(models.Membership, "user__email")),
            ("invitation", names_in(models.Invitation, "email")),
            ("organization", names_in(models.Organization)),
            ("project", names_in(models.Project)),
            ("service_account", names_in(models.ServiceAccount)),
        ):
            register_target_namer(target_type, namer)
        for name, reader in usage.READERS.items():
            register_usage(name, reader)
