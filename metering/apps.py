"""The application of usage."""

from __future__ import annotations

from django.apps import AppConfig


class MeteringConfig(AppConfig):
    """What clusters used: minutes while they are fresh, rolled-up hours and days behind them."""

    name = "metering"
    label = "metering"
