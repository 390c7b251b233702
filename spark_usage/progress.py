"""Writes a job's progress to standard error."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import SparkContext

# Seconds between two looks at the tasks of a running stage.
_PERIOD_SECONDS = 5.0


class Progress:
    """Counts a job's stages: `stage 2 of 6: what`, then how many of its tasks are done, and what
    they read."""

    def __init__(self, context: SparkContext, stages: int) -> None:
        self._context = context
        self._stages = stages
        self._stage = 0

    @contextmanager
    def stage(self, what: str) -> Iterator[None]:
        """Announces a stage and reports on it until it is done."""
        self._stage += 1
        head = f"stage {self._stage} of {self._stages}: {what}"
        self.note(head)
        done = threading.Event()
        watcher = threading.Thread(target=self._watch_tasks, args=(head, done), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
        watcher.join()

    def note(self, text: str) -> None:
        """Writes one line."""
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    def _watch_tasks(self, head: str, done: threading.Event) -> None:
        last_line = ""
        while not done.wait(_PERIOD_SECONDS):
            line = self._tasks_text()
            if line and line != last_line:
                self.note(f"{head}: {line}")
                last_line = line

    def _tasks_text(self) -> str:
        # Spark's own record of its stages, since PySpark's tracker knows neither rows nor bytes.
        active = self._context._jsc.sc().statusStore().activeStages()
        running = [active.apply(place) for place in range(active.size())]
        if not running:
            return ""
        tasks, completed = (
            sum(getattr(stage, name)() for stage in running)
            for name in ("numTasks", "numCompleteTasks")
        )
        rows, size_bytes = (
            sum(
                getattr(stage, f"input{what}")() + getattr(stage, f"shuffleRead{what}")()
                for stage in running
            )
            for what in ("Records", "Bytes")
        )
        return f"{completed} of {tasks} tasks, {rows} rows and {size_bytes} bytes read"
