"""A connection whose outermost transaction can be interrupted while its request waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.backends.postgresql import base
from django.db.transaction import TransactionManagementError
from typing_extensions import override

# What Django's wrapper knows of open blocks.
OF_BLOCKS = (
    *("in_atomic_block", "atomic_blocks", "savepoint_ids", "commit_on_exit", "needs_rollback"),
    "run_on_commit",
)


class DatabaseWrapper(base.DatabaseWrapper):
    """Django's, with `interrupt`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 (as Django's)
        super().__init__(*args, **kwargs)
        # What the next query calls in its new transaction, where a block is interrupted.
        self._resumed: Callable[[], None] | None = None
        # The connection that an interrupted block goes on with, unless it gave it back.
        self._kept: Any = None

    @property
    def interrupted(self) -> bool:
        """Whether a block is open that has neither a transaction nor a connection now."""
        return self._resumed is not None

    def interrupt(self, *, resumed: Callable[[], None], keeps_connection: bool = False) -> None:
        """Commits the block's transaction, and gives the connection back until the next query.

        The block stays open for Django: the next query begins its next transaction, in which
        `resumed` is called first. What was registered with `on_commit` runs when the block ends.
        With `keeps_connection` the next transaction is on the same connection. Repeating it changes
        nothing.

        Raises `TransactionManagementError` outside of a block, within a nested one, and in one that
        is to be rolled back.
        """
        if self._resumed is not None:
            return
        if not self.in_atomic_block or self.savepoint_ids or self.needs_rollback:
            message = "only an outermost block without errors can be interrupted"
            raise TransactionManagementError(message)
        self.validate_thread_sharing()
        self._commit()  # type: ignore[attr-defined] # not in the stubs
        self._resumed = resumed
        if keeps_connection:
            self._kept = self.connection
        else:
            self._close()  # type: ignore[attr-defined] # as above
        self.connection = None

    @override
    def connect(self) -> None:
        """Connects, and continues the interrupted block in a new transaction where there is one."""
        resumed, self._resumed = self._resumed, None
        if resumed is None:
            super().connect()
            return
        if self._take_kept():
            resumed()
            return
        # Connecting forgets all of it. Nested blocks may have begun since the interruption.
        kept = {name: getattr(self, name) for name in OF_BLOCKS}
        try:
            super().connect()
            self.set_autocommit(False)
        except BaseException:
            self._close()  # type: ignore[attr-defined] # as above
            self.connection, self._resumed = None, resumed
            raise
        finally:
            for name, value in kept.items():
                setattr(self, name, value)
        resumed()

    @override
    def set_autocommit(
        self, autocommit: bool, force_begin_transaction_with_broken_autocommit: bool = False
    ) -> None:
        """Sets it as Django does; where a block ends that is interrupted, it connects for nothing.

        Such a block has been committed. What it registered with `on_commit` runs.
        """
        if self._resumed is None or not autocommit or self.in_atomic_block:
            super().set_autocommit(autocommit, force_begin_transaction_with_broken_autocommit)
            return
        self._resumed = None
        if self._take_kept():
            super().set_autocommit(autocommit)
            return
        if self.run_commit_hooks_on_set_autocommit_on:
            self.run_commit_hooks_on_set_autocommit_on = False
            self.run_and_clear_commit_hooks()

    def dissolve(self) -> None:
        """Ends the use of this object, so that its memory is free at once.

        It and its helpers refer to each other, and would wait for the garbage collector.
        """
        self.close()
        helpers = ("client", "creation", "features", "introspection", "ops", "validation")
        for helper in (*helpers, "wrap_database_errors"):
            vars(self)[helper].__dict__.clear()

    def _take_kept(self) -> bool:
        """Goes on with the connection that was kept; returns False where there is none."""
        kept, self._kept = self._kept, None
        if kept is None or kept.closed:
            return False
        self.connection = kept
        return True
