"""What users and API keys are called in the audit log. In the caller's tenancy scope."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from console.base.accounts.models import ApiKey, User


def users_by_id(ids: Collection[str]) -> Mapping[str, str]:
    """Addresses of users by id, whether or not they are members still."""
    return dict(User.objects.filter(pk__in=ids).values_list("pk", "email"))


def keys_by_id(ids: Collection[str]) -> Mapping[str, str]:
    """Names of API keys by id, revoked ones too."""
    return dict(ApiKey.objects.filter(pk__in=ids).values_list("pk", "name"))
