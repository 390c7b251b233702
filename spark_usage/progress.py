"""Writes a job's progress to standard error."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import StatusTracker

# Seconds between two looks at the tasks of a running stage.
_PERIOD_SECONDS = 5.0


class Progress:
    """Counts a job's stages: `stage 2 of 6: what`, then how many of its tasks are done."""

    def __init__(self, tracker: StatusTracker, stages: int) -> None:
        self._tracker = tracker
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
        infos = [
            self._tracker.getStageInfo(stage_id) for stage_id in self._tracker.getActiveStageIds()
        ]
        running = [info for info in infos if info is not None]
        total = sum(info.numTasks for info in running)
        completed = sum(info.numCompletedTasks for info in running)
        return f"{completed} of {total} tasks" if running else ""
