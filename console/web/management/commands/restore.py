"""`manage.py restore --from DIR`: what `manage.py backup` made."""

from __future__ import annotations

from console.web.management.handing_over import HandOver


class Command(HandOver):
    """Becomes `python -m console.programs.backup restore`."""

    help = "Restore what `manage.py backup` made. The service must be stopped."
    module = ("console.programs.backup", "restore")
