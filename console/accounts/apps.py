"""The application of accounts."""

from __future__ import annotations

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """Organisations, users, memberships, API keys."""

    name = "console.accounts"
    label = "accounts"
