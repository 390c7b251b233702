"""The typed settings, for code that runs inside Django."""

from __future__ import annotations

from typing import cast

from django.conf import settings

from console.settings.config import Config


def config() -> Config:
    """Returns the `Config` that Django's settings were made from."""
    return cast("Config", getattr(settings, "FRESHET"))  # noqa: B009 - mypy cannot see it
