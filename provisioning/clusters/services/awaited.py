"""Operations that requests wait for: a process looks at all of them at a time.

If each request looked by itself, a few dozen of them would keep a web process busy.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict

from django.db import connection

from console.base.common.tenancy import system_scope
from provisioning.models import Operation

logger = logging.getLogger(__name__)

LOOK_EVERY_S = 0.1


class AwaitedOperations:
    """Waits for operations. Its thread runs, and reads the database, only while somebody waits."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[str, set[threading.Event]] = defaultdict(set)
        self._looks = False

    def wait(self, operation_id: str, timeout_s: float) -> None:
        """Returns once an operation is finished or gone, or after `timeout_s`.

        For use outside of a transaction. It may return early where the database does not answer.
        """
        over = threading.Event()
        with self._lock:
            self._waiting[operation_id].add(over)
            if not self._looks:
                self._looks = True
                threading.Thread(target=self._look, name="awaited", daemon=True).start()
        over.wait(timeout_s)
        with self._lock:
            waiting = self._waiting[operation_id]
            waiting.discard(over)
            if not waiting:
                del self._waiting[operation_id]

    def _look(self) -> None:
        pause = threading.Event()
        while awaited := self._awaited():
            try:
                over = awaited - _unfinished(awaited)
            # Any error: the requests meet it themselves and answer with it.
            except Exception:
                logger.warning("awaited.unread", exc_info=True)
                over = awaited
            with self._lock:
                for operation_id in over & self._waiting.keys():
                    for event in self._waiting[operation_id]:
                        event.set()
            pause.wait(LOOK_EVERY_S)

    def _awaited(self) -> set[str]:
        """What is waited for; the thread ends where there is nothing."""
        with self._lock:
            self._looks = bool(self._waiting)
            return set(self._waiting)


awaited_operations = AwaitedOperations()


def _unfinished(operation_ids: set[str]) -> set[str]:
    try:
        with system_scope():
            unfinished = Operation.objects.unfinished().filter(pk__in=operation_ids)
            return set(unfinished.values_list("pk", flat=True))
    finally:
        connection.close()
