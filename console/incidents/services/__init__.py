"""Opens and closes incidents, and sends their mails."""

from console.incidents.services.mails import send_incident_mail
from console.incidents.services.sweeping import sweep_incidents

__all__ = ["send_incident_mail", "sweep_incidents"]
