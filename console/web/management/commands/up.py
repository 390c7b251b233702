"""`manage.py up`: all of Freshet on this machine."""

from __future__ import annotations

from console.web.management.handing_over import HandOver


class Command(HandOver):
    """Becomes the supervisor, which needs neither Django nor the memory that Django takes."""

    help = "Start everything on this machine: PostgreSQL, Redis, web, workers, gateway, keeper."
    module = ("console.programs.supervisor",)
