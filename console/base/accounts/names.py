"""Names of users and API keys for the audit log. Queries run in the caller's tenancy scope."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from console.base.accounts.models import ApiKey, User


def users_by_id(ids: Collection[str]) -> Mapping[str, str]:
    """Returns e-mail addresses of users by id, whether or not they are still members."""
    return dict(User.objects.filter(pk__in=ids).values_list("pk", "email"))


def keys_by_id(ids: Collection[str]) -> Mapping[str, str]:
    """Returns names of API keys by id, revoked ones too."""
    return dict(ApiKey.objects.filter(pk__in=ids).values_list("pk", "name"))
