"""Has a task that looks at the whole state of a thing wait in the queue once, however often it is
asked for.

Whoever asks for the task again while it waits needs no second one: it begins after that request
has committed, and so sees what it changed. So an organization has no more tasks in the queue than
it has things.
"""

from __future__ import annotations

from collections.abc import Mapping

from console.base.common.concurrency import Count, TooManyAtOnce, concurrency

# The names of the tasks that wait once for the same arguments.
ONCE: set[str] = set()
# A message that is lost keeps others out of the queue for so long.
LOST_AFTER_S = 30.0
QUEUED = "queued"


def wait_once(task: str) -> None:
    """Has the task of this name wait in the queue once for the same arguments.

    It calls `begin` before it reads anything.
    """
    ONCE.add(task)


def has_to_queue(task: str, arguments: Mapping[str, str]) -> bool:
    """Whether a message is to be sent for a task. Then it counts as waiting in the queue."""
    if task not in ONCE:
        return True
    try:
        concurrency().take([Count(QUEUED, _key(task, arguments), 1)], lasts_s=LOST_AFTER_S)
    except TooManyAtOnce:
        return False
    return True


def begin(task: str, arguments: Mapping[str, str]) -> None:
    """Says that a task waits no more: whoever asks for it now needs another one."""
    concurrency().clear(QUEUED, _key(task, arguments))


def _key(task: str, arguments: Mapping[str, str]) -> str:
    return ":".join([task, *(value for _, value in sorted(arguments.items()))])
