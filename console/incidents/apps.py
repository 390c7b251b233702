"""The application of incidents."""

from __future__ import annotations

from django.apps import AppConfig


class IncidentsConfig(AppConfig):
    """What is wrong with the service, or with a cluster."""

    name = "console.incidents"
    label = "incidents"
