"""What the commands of support share: they do one thing to one organisation, for a reason."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from django.core.management.base import BaseCommand, CommandError, CommandParser


class SupportCommand(BaseCommand, ABC):
    """`ORGANIZATION --reason REASON`; the reason is kept in the audit log."""

    # What holds once it is done, and what to say where there was nothing to do, after the id.
    done: ClassVar[str]
    nothing: ClassVar[str]

    def add_arguments(self, parser: CommandParser) -> None:
        """Which one, and why."""
        parser.add_argument("organization", help="org_…")
        parser.add_argument("--reason", required=True, help="kept in the audit log")

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 (as Django has it)
        """Does it, or says that there is nothing to do."""
        del args
        wanted = options["organization"]
        if not self.work(wanted, options["reason"]):
            message = f"{wanted} {self.nothing}"
            raise CommandError(message)
        self.stdout.write(self.done)

    @abstractmethod
    def work(self, organization_id: str, reason: str) -> bool:
        """Does it. False where there is nothing to do."""
