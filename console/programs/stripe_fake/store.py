"""The fake's state in one SQLite file: a restart loses nothing.

One connection, which the callers share under the lock of `Sandbox`. Objects are kept as the JSON
that the API answers; members that begin with `_` are the fake's own and never leave it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from console.programs.stripe_fake.errors import Json

_TABLES = """
CREATE TABLE IF NOT EXISTS object (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, kind TEXT NOT NULL,
  body TEXT NOT NULL, changed_at INTEGER NOT NULL, indexed TEXT);
CREATE INDEX IF NOT EXISTS object_by_customer
  ON object (kind, json_extract(body, '$.customer'), seq);
CREATE INDEX IF NOT EXISTS object_by_kind ON object (kind, seq);
CREATE INDEX IF NOT EXISTS object_by_due ON object (json_extract(body, '$._due_at'))
  WHERE json_extract(body, '$._due_at') IS NOT NULL;
CREATE TABLE IF NOT EXISTS answer (
  key TEXT PRIMARY KEY, created_at INTEGER NOT NULL, endpoint TEXT NOT NULL,
  digest TEXT NOT NULL, status INTEGER NOT NULL, body TEXT NOT NULL, request_id TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS delivery (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, event TEXT, body TEXT NOT NULL, rank INTEGER NOT NULL,
  state TEXT NOT NULL, due_at REAL NOT NULL, attempts INTEGER NOT NULL, status INTEGER,
  flaw TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS delivery_by_state ON delivery (state, due_at);
CREATE TABLE IF NOT EXISTS fault (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT NOT NULL, left INTEGER);
CREATE TABLE IF NOT EXISTS value (name TEXT PRIMARY KEY, body TEXT NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """What was answered to the first request with an idempotency key.

    `digest`: of the request's parameters; `created_at`: Unix time in seconds.
    """

    endpoint: str
    digest: str
    status: int
    body: str
    request_id: str
    created_at: int


@dataclass(slots=True)
class Delivery:
    """One webhook to send: `state` is `waiting`, `held`, `done`, `dropped` or `failed`.

    `due_at`: Unix time in seconds by the machine's clock. `rank`: the order among those that are
    due. `flaw`: empty, `forged` (signed with another secret) or `stale` (signed an hour ago).
    `event` is None for a forged one, of which no event exists.
    """

    seq: int
    event: str | None
    body: str
    rank: int
    state: str
    due_at: float
    attempts: int
    status: int | None
    flaw: str


class Store:
    """Reads and writes of the state; `transaction` makes several of them one."""

    def __init__(self, file: Path | None) -> None:
        self._db = sqlite3.connect(
            ":memory:" if file is None else file, check_same_thread=False, isolation_level=None
        )
        self._db.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;" + _TABLES)

    def close(self) -> None:
        """Closes the file."""
        self._db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Keeps all changes of the block, or none where it raises."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Takes back the changes of the block alone where it raises, within a transaction."""
        self._db.execute("SAVEPOINT block")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK TO block")
            raise
        finally:
            self._db.execute("RELEASE block")

    # Objects

    def insert(self, kind: str, body: Json, now: int) -> None:
        """Stores a new object under its `id`."""
        self._db.execute(
            "INSERT INTO object (id, kind, body, changed_at) VALUES (?, ?, ?, ?)",
            (body["id"], kind, json.dumps(body), now),
        )

    def replace(self, body: Json, *, now: int, search_lag_s: int) -> None:
        """Stores an object's new state; search goes on showing the old one for `search_lag_s`."""
        self._db.execute(
            "UPDATE object SET changed_at = :now, body = :body,"
            " indexed = CASE WHEN changed_at <= :shown THEN body ELSE indexed END WHERE id = :id",
            {
                "now": now,
                "body": json.dumps(body),
                "shown": now - search_lag_s,
                "id": body["id"],
            },
        )

    def load(self, kind: str, object_id: str) -> Json | None:
        """Returns an object, or None where there is none of that kind."""
        row = self._db.execute(
            "SELECT body FROM object WHERE id = ? AND kind = ?", (object_id, kind)
        ).fetchone()
        return None if row is None else _decoded(row[0])

    def select(
        self,
        kind: str,
        equal: Json | None = None,
        created: Json | None = None,
        newest_first: bool = True,
    ) -> list[Json]:
        """Returns the objects of a kind whose members equal `equal`.

        `created`: bounds of `created` by their names (`gt`, `gte`, `lt`, `lte`).
        """
        where, values = ["kind = ?"], [kind]
        for name, value in (equal or {}).items():
            where.append(f"json_extract(body, '$.{name}') IS ?")
            values.append(value)
        signs = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
        for bound, value in (created or {}).items():
            where.append(f"json_extract(body, '$.created') {signs[bound]} ?")
            values.append(value)
        order = "DESC" if newest_first else "ASC"
        # The names are those of endpoints in this package, never a caller's.
        holds = " AND ".join(where)
        query = f"SELECT body FROM object WHERE {holds} ORDER BY seq {order}"  # noqa: S608
        rows = self._db.execute(query, values)
        return [_decoded(row[0]) for row in rows]

    def due(self, now: int) -> list[Json]:
        """Returns the objects whose member `_due_at` has come, in its order."""
        rows = self._db.execute(
            "SELECT body FROM object WHERE json_extract(body, '$._due_at') IS NOT NULL"
            " AND json_extract(body, '$._due_at') <= ?"
            " ORDER BY json_extract(body, '$._due_at'), seq",
            (now,),
        )
        return [_decoded(row[0]) for row in rows]

    def searchable(self, kind: str, shown_at: int) -> list[Json]:
        """Returns the objects of a kind as they were at `shown_at`, newest first."""
        rows = self._db.execute(
            "SELECT CASE WHEN changed_at <= ? THEN body ELSE indexed END FROM object"
            " WHERE kind = ? ORDER BY seq DESC",
            (shown_at, kind),
        )
        return [_decoded(row[0]) for row in rows if row[0] is not None]

    # Idempotency keys

    def answer_to(self, key: str) -> KeptAnswer | None:
        """Returns what was answered to an idempotency key."""
        row = self._db.execute(
            "SELECT endpoint, digest, status, body, request_id, created_at FROM answer"
            " WHERE key = ?",
            (key,),
        ).fetchone()
        return None if row is None else KeptAnswer(*row)

    def keep_answer(self, key: str, answer: KeptAnswer) -> None:
        """Keeps an answer for its idempotency key."""
        self._db.execute(
            "INSERT OR REPLACE INTO answer"
            " (key, endpoint, digest, status, body, request_id, created_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                *(key, answer.endpoint, answer.digest, answer.status, answer.body),
                *(answer.request_id, answer.created_at),
            ),
        )

    def forget_answers(self, before: int) -> None:
        """Forgets the answers that were made before a Unix time."""
        self._db.execute("DELETE FROM answer WHERE created_at <= ?", (before,))

    # Webhooks

    def add_delivery(
        self,
        *,
        event: str | None,
        body: str,
        due_at: float,
        state: str,
        last_first: bool = False,
        flaw: str = "",
    ) -> None:
        """Queues a webhook behind all others, or (`last_first`) before them."""
        self._db.execute(
            "INSERT INTO delivery (event, body, rank, state, due_at, attempts, flaw)"
            " VALUES (?, ?, (SELECT (coalesce(max(seq), 0) + 1) * ? FROM delivery), ?, ?, 0, ?)",
            (event, body, -1 if last_first else 1, state, due_at, flaw),
        )

    def write_delivery(self, delivery: Delivery) -> None:
        """Stores a delivery's new state."""
        self._db.execute(
            "UPDATE delivery SET body = ?, rank = ?, state = ?, due_at = ?, attempts = ?,"
            " status = ?, flaw = ? WHERE seq = ?",
            (
                *(delivery.body, delivery.rank, delivery.state, delivery.due_at),
                *(delivery.attempts, delivery.status, delivery.flaw, delivery.seq),
            ),
        )

    def deliveries(self, states: Sequence[str], due_by: float | None = None) -> list[Delivery]:
        """Returns the deliveries in some states that are due, in the order of their sending."""
        rows = self._db.execute(
            "SELECT seq, event, body, rank, state, due_at, attempts, status, flaw FROM delivery"
            " WHERE state IN (SELECT value FROM json_each(?)) AND due_at <= ? ORDER BY rank, seq",
            (json.dumps(states), float("inf") if due_by is None else due_by),
        )
        return [Delivery(*row) for row in rows]

    def next_due_at(self) -> float | None:
        """Returns when the next waiting delivery is due; None where none waits."""
        row = self._db.execute(
            "SELECT min(due_at) FROM delivery WHERE state = 'waiting'"
        ).fetchone()
        return None if row[0] is None else float(row[0])

    def pending_webhooks(self, event: str) -> int:
        """Returns how many deliveries of an event were not answered by 2xx yet."""
        row = self._db.execute(
            "SELECT count(*) FROM delivery WHERE event = ? AND state IN ('waiting', 'held')",
            (event,),
        ).fetchone()
        return int(row[0])

    # Faults, and single values

    def add_fault(self, body: Json, count: int | None) -> int:
        """Adds a fault that acts `count` times (None: until it is removed); returns its number."""
        cursor = self._db.execute(
            "INSERT INTO fault (body, left) VALUES (?, ?)", (json.dumps(body), count)
        )
        return int(cursor.lastrowid or 0)

    def faults(self) -> list[Json]:
        """Returns the faults that still act, oldest first, with `id` and `left`."""
        rows = self._db.execute("SELECT seq, body, left FROM fault ORDER BY seq")
        return [{**_decoded(body), "id": seq, "left": left} for seq, body, left in rows]

    def use_fault(self, fault: Json) -> None:
        """Counts that a fault acted once; removes it after the last time."""
        left = fault["left"]
        if left is not None and left <= 1:
            self.remove_fault(fault["id"])
        else:
            self._db.execute("UPDATE fault SET left = left - 1 WHERE seq = ?", (fault["id"],))

    def remove_fault(self, seq: int | None) -> None:
        """Removes one fault, or all of them."""
        self._db.execute("DELETE FROM fault WHERE ? IS NULL OR seq = ?", (seq, seq))

    def value(self, name: str) -> Json | None:
        """Returns a single value by its name."""
        row = self._db.execute("SELECT body FROM value WHERE name = ?", (name,)).fetchone()
        return None if row is None else _decoded(row[0])

    def set_value(self, name: str, body: Json) -> None:
        """Stores a single value."""
        self._db.execute(
            "INSERT OR REPLACE INTO value (name, body) VALUES (?, ?)", (name, json.dumps(body))
        )


def _decoded(text: str) -> Json:
    body: Json = json.loads(text)
    return body
