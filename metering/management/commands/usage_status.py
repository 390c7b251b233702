"""`manage.py usage_status`: how far the meter is, and what is missing."""

from __future__ import annotations

from datetime import datetime

from django.core.management.base import BaseCommand

from metering.services.status import MeterStatus, meter_status


class Command(BaseCommand):
    """Shows lag, damaged files, running jobs, what is missing or incomplete, and differences."""

    help = "Shows how far usage is metered, and what is missing."

    def handle(self, *args: object, **options: object) -> None:
        """Prints one line for each fact."""
        for line in lines_of(meter_status()):
            self.stdout.write(line)


def lines_of(status: MeterStatus) -> list[str]:
    """The facts of a status as lines of text."""
    ran = _time_text(status.ran_at)
    lag = f"{status.lag.total_seconds():.0f} s" if status.lag is not None else "no file yet"
    return [
        f"cell {status.cell}",
        f"last ingest: {ran}",
        f"age of the newest usage file: {lag}",
        f"running jobs: {len(status.running) or 'none'}",
        *(
            f"  {job.job} of {job.day} ({job.id}) at {_time_text(job.reported_at)}:"
            f" {job.progress or 'it has begun'}"
            for job in status.running
        ),
        f"days without a roll-up: {', '.join(map(str, status.missing_days)) or 'none'}",
        f"last day compared with the log: {status.compared or 'none'}",
        f"days that differ from the log: {len(status.differing) or 'none'}",
        *(f"  {day}: {what}" for day, what in status.differing),
        f"running totals compared with their rows: {_time_text(status.totals_checked)}",
        f"running totals that differ: {status.totals_differing or 'none'}",
        *(f"  {difference}" for difference in status.totals_differences),
        f"damaged files: {len(status.damaged) or 'none'}",
        *(f"  {key}: {reason}" for key, reason in status.damaged),
        f"incomplete hours: {len(status.incomplete) or 'none'}",
        *(f"  {hour:%Y-%m-%d %H:00} {cluster}: {why}" for cluster, hour, why in status.incomplete),
    ]


def _time_text(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC" if moment else "never"
