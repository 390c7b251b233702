"""Rows of incidents."""

from console.incidents.models.incident import Incident
from console.incidents.models.restarts import RestartCount

__all__ = ["Incident", "RestartCount"]
