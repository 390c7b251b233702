"""The base of support's commands: each changes one organization, and audits the reason."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from django.core.management.base import BaseCommand, CommandError, CommandParser


class SupportCommand(BaseCommand, ABC):
    """`ORGANIZATION --reason REASON`; the reason is kept in the audit log."""

    # What is printed after the change; what follows the organization's id where there was none.
    done: ClassVar[str]
    nothing: ClassVar[str]

    def add_arguments(self, parser: CommandParser) -> None:
        """Adds the organization's id and the reason."""
        parser.add_argument("organization", help="org_…")
        parser.add_argument("--reason", required=True, help="kept in the audit log")

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 (as Django has it)
        """Makes the change. Raises `CommandError` where there is nothing to change."""
        organization_id = options["organization"]
        if not self.change(organization_id, options["reason"]):
            message = f"{organization_id} {self.nothing}"
            raise CommandError(message)
        self.stdout.write(self.done)

    @abstractmethod
    def change(self, organization_id: str, reason: str) -> bool:
        """Makes the change; returns whether there was something to change."""
