"""Tasks that wait for their organization's turn, however many of them it asks for.

Celery's queue is in the order in which messages came: whoever sends many is served for as long as
they last. So tasks that an organization can ask for in numbers wait in a table. Celery carries
messages that say only that something waits: the worker that takes one does the task of the
organization whose last turn is longest ago. Of one organization so many run at a time
(`queue.tasks_per_organization`); when one ends, the next message is sent at once.

A task looks at the whole state of a thing, so it waits once, however often it is asked for: it
begins after those requests have committed, and sees what they changed. One that is asked for while
it runs is done once more.

A task whose worker dies is taken by whoever gets its message next, or by another one after
`TAKEN_S`; a lost message is sent again by the sweep. So a task runs at least once, and must be safe
to repeat.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from celery import current_app
from django.db import connection

from console.base.common import metrics
from console.base.common.clock import now
from console.base.common.conf import config
from console.base.common.ids import new_id
from console.base.common.locks import lock_briefly
from console.base.common.models import TaskTurn, WaitingTask
from console.base.common.requests import in_request
from console.base.common.tenancy import organization_scope, system_scope
from console.base.common.transactions import outside_transaction

logger = logging.getLogger(__name__)

# The Celery task that does whichever waiting task is next.
NEXT_TASK = "common.run_waiting"
# How long a worker has a task to itself. One that takes longer may be done by another one too.
TAKEN_S = 15.0
# A task is taken this much before it is due, since its message comes on time by another clock.
EARLY_S = 0.25
# The sweep sends a message for tasks that are due since then.
OVERDUE = timedelta(seconds=5)
SWEPT_ORGANIZATIONS_MAX = 500
# An organization that had no turn for so long counts as one that never had any.
TURN_KEPT = timedelta(days=1)
WAIT_IN_TURNS: set[str] = set()

# How many tasks of an organization are being done.
BUSY = """
SELECT organization_id, count(*) FILTER (WHERE taken_until > %(now)s) AS running
FROM common_waitingtask GROUP BY organization_id
"""
CLAIM = f"""
SELECT w.id FROM common_waitingtask w
JOIN ({BUSY}) busy USING (organization_id)
LEFT JOIN common_taskturn turn USING (organization_id)
WHERE (w.taken_until IS NULL OR w.taken_until <= %(now)s) AND w.due_at <= %(due)s
  AND busy.running < %(running_max)s
ORDER BY turn.last_at NULLS FIRST, w.due_at, w.id LIMIT 1
"""  # noqa: S608 (constants of this module)
OVERDUE_ORGANIZATIONS = f"""
SELECT w.organization_id FROM common_waitingtask w
JOIN ({BUSY}) busy USING (organization_id)
WHERE (w.taken_until IS NULL OR w.taken_until <= %(now)s) AND w.due_at <= %(due)s
  AND busy.running < %(running_max)s
GROUP BY w.organization_id ORDER BY min(w.due_at) LIMIT %(most)s
"""  # noqa: S608 (constants of this module)
STORE = """
INSERT INTO common_waitingtask
  (id, organization_id, task, arguments, key, request_id, due_at, taken_until, taken_by, again)
VALUES (%(id)s, %(organization)s, %(task)s, %(arguments)s, %(key)s, %(request)s, %(now)s, NULL,
        '', false)
ON CONFLICT (key) DO UPDATE SET
  due_at = least(common_waitingtask.due_at, EXCLUDED.due_at),
  again = common_waitingtask.taken_until IS NOT NULL
"""


@dataclass(frozen=True, slots=True)
class Taken:
    """A task that this worker has to itself until `until`."""

    id: str
    organization_id: str
    task: str
    arguments: Mapping[str, Any]
    request_id: str
    until: datetime


def take_turns(task: str) -> None:
    """Has the tasks of this name wait for their organization's turn.

    Such a task returns after how many seconds it is to be done again, or None. Its key, of its name
    and arguments, has at most `KEY_CHARS_MAX` characters.
    """
    WAIT_IN_TURNS.add(task)


def waits_in_turns(task: str) -> bool:
    """Whether a task of this name waits in the table, and not in Celery's queue."""
    return task in WAIT_IN_TURNS


def wait_for_turn(
    *, task: str, organization_id: str, arguments: Mapping[str, str], request_id: str
) -> None:
    """Has a task wait, and sends a message for it where none is on its way.

    For use outside of a transaction. Where Celery's broker does not answer, the task waits for the
    sweep's message. Repeating it changes nothing.
    """
    with organization_scope(organization_id), connection.cursor() as cursor:
        lock_briefly("turns", organization_id)
        ahead = _count_ready(organization_id)
        row: dict[str, Any] = {
            "id": new_id("wait"),
            "organization": organization_id,
            "task": task,
            "arguments": json.dumps(dict(arguments)),
            "key": ":".join([task, *(value for _, value in sorted(arguments.items()))]),
            "request": request_id,
            "now": now(),
        }
        cursor.execute(STORE, row)
        # The messages of those before it, and the end of each that runs, bring its turn too.
        sends = ahead < config().queue.tasks_per_organization
    if sends:
        _try_to_send()


def run_waiting(*, message: str) -> bool:
    """Does the task whose turn it is; returns False where none may be done now.

    `message` is the id of Celery's message: the queue delivers it again where a worker dies.
    Raises what the task raises, which is then not repeated.
    """
    taken = _take_next(message)
    if taken is None:
        return False
    again_s: float | None = None
    try:
        with in_request(taken.request_id), _observed(taken.task):
            again_s = current_app.tasks[taken.task](**taken.arguments)
    finally:
        _finish(taken, again_s)
    return True


def sweep_waiting() -> int:
    """Sends a message for each organization whose tasks should have been done by now.

    Returns how many it sent. It also forgets organizations that had no turn for long.
    """
    with system_scope(), connection.cursor() as cursor:
        moment = now()
        cursor.execute(
            OVERDUE_ORGANIZATIONS,
            {**_limits(moment, due=moment - OVERDUE), "most": SWEPT_ORGANIZATIONS_MAX},
        )
        organizations = cursor.fetchall()
        TaskTurn.objects.filter(last_at__lt=moment - TURN_KEPT).delete()
    for _ in organizations:
        if not _try_to_send():
            return 0
    return len(organizations)


def _limits(moment: datetime, *, due: datetime) -> dict[str, Any]:
    return {
        "now": moment,
        "due": due,
        "running_max": config().queue.tasks_per_organization,
    }


def _take_next(message: str) -> Taken | None:
    with system_scope(), connection.cursor() as cursor:
        # One worker at a time chooses, or two would take more of an organization than may run.
        lock_briefly("turns", "next")
        if message:
            # Who had it before has died.
            WaitingTask.objects.filter(taken_by=message).update(taken_until=None, taken_by="")
        moment = now()
        cursor.execute(CLAIM, _limits(moment, due=moment + timedelta(seconds=EARLY_S)))
        chosen = cursor.fetchone()
        if chosen is None:
            return None
        until = moment + timedelta(seconds=TAKEN_S)
        WaitingTask.objects.filter(pk=chosen[0]).update(
            taken_until=until, taken_by=message, again=False
        )
        row = WaitingTask.objects.get(pk=chosen[0])
        TaskTurn.objects.bulk_create(
            [TaskTurn(organization_id=row.organization_id, last_at=moment)],
            update_conflicts=True,
            unique_fields=["organization_id"],
            update_fields=["last_at"],
        )
    return Taken(row.pk, row.organization_id, row.task, row.arguments, row.request_id, until)


def _finish(taken: Taken, again_s: float | None) -> None:
    """Ends a turn: the task goes, or waits again, and the organization's next one may be taken."""
    with organization_scope(taken.organization_id):
        lock_briefly("turns", taken.organization_id)
        # Where it took too long another worker has it by now, and this one changes nothing.
        own = WaitingTask.objects.filter(pk=taken.id, taken_until=taken.until)
        own.filter(again=True).update(taken_until=None, taken_by="", due_at=now())
        later = 0
        if again_s is None:
            own.delete()
        else:
            due_at = now() + timedelta(seconds=again_s)
            later = own.update(taken_until=None, taken_by="", due_at=due_at)
        more = _count_ready(taken.organization_id)
    if more:
        _try_to_send()
    if later and again_s is not None:
        _try_to_send(after_s=again_s)


def _count_ready(organization_id: str) -> int:
    """How many tasks of an organization run, or wait and are due."""
    rows = WaitingTask.objects.filter(organization_id=organization_id)
    return rows.filter(due_at__lte=now()).count()


def _try_to_send(after_s: float = 0.0) -> bool:
    """Sends a message; False where the broker does not take it, and the sweep sends another."""
    try:
        with outside_transaction("the queue"):
            current_app.send_task(NEXT_TASK, retry=False, countdown=after_s or None)
    # Any error, as for the outbox.
    except Exception as error:
        logger.warning("waiting.broker_away error=%s", error)
        return False
    return True


@contextmanager
def _observed(task: str) -> Iterator[None]:
    """Counts the task under its own name in the metrics of tasks."""
    began, outcome = time.perf_counter(), "failed"
    try:
        yield
        outcome = "succeeded"
    finally:
        metrics.TASKS.labels(task, outcome).observe(time.perf_counter() - began)
