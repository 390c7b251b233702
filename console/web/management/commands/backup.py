"""`manage.py backup --to DIR`: PostgreSQL, the metadata store and the secrets, at one moment."""

from __future__ import annotations

from console.web.management.handing_over import HandOver


class Command(HandOver):
    """Becomes `python -m console.programs.backup backup`."""

    help = "Back up PostgreSQL, the cell's metadata and the secrets. The service may run."
    module = ("console.programs.backup", "backup")
