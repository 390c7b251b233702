"""`python -m tests.billing.killed_issuing POINT`: issues months, and is killed at a point.

The clock says when the month of `tests/billing/world.py` can be invoiced. It prints nothing: the
process that would say what happened is dead.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import django
from django.utils import timezone

# Batches before the one in which it dies, and invoices of each.
BATCHES_BEFORE = 2
BATCH = 2


def kill_in_batch(known: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a function so that its call for the third batch kills this process."""
    calls = 0

    def wrapped(*args: Any, **more: Any) -> Any:  # noqa: ANN401 (what it wraps takes)
        nonlocal calls
        calls += 1
        if calls > BATCHES_BEFORE:
            os.kill(os.getpid(), signal.SIGKILL)
        return known(*args, **more)

    return wrapped


def main(point: str) -> None:
    """Issues the months that are due. `point`: `reserved`, `written` or `committed`."""
    django.setup()
    from billing.services import issuing, mailing, months, numbers, writing  # noqa: PLC0415
    from console.base.common import locks  # noqa: PLC0415
    from tests.billing import world  # noqa: PLC0415

    timezone.now = lambda: world.AFTER
    # So that whoever goes on need not wait long for the locks of a dead process.
    locks.TASK_HELD_S, locks.TASK_RENEWED_S = 4.0, 0.5
    issuing.BATCH = BATCH
    if point == "reserved":
        # The numbers are in the store, and nothing is written.
        numbers.keep_block = kill_in_batch(numbers.keep_block)
    elif point == "written":
        # All of the batch is written, and not committed.
        # By name: `writing` imports it, and does not export it.
        setattr(writing, "note_mails", kill_in_batch(mailing.note_mails))  # noqa: B010
    else:
        # It is committed, and the store does not know.
        numbers.confirm_block = kill_in_batch(numbers.confirm_block)
    months.issue_due_months()


if __name__ == "__main__":
    main(sys.argv[1])
