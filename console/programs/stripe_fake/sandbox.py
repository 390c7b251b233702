"""The account at the fake: its objects, its clock, the events that changes make.

What belongs to every kind of object is here; what one kind may do is in `objects/`.
"""

from __future__ import annotations

import json
import secrets
import string
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from console.programs.stripe_fake.clock import FakeClock
from console.programs.stripe_fake.errors import Json, missing_object
from console.programs.stripe_fake.faults import choose_flaws
from console.programs.stripe_fake.keys import API_VERSION
from console.programs.stripe_fake.store import Store

_ALPHABET = string.ascii_letters + string.digits
_REORDERED_S = 0.5


@dataclass(frozen=True, slots=True)
class Settings:
    """What the control API sets: `search_lag_s` seconds pass until search shows a change, and
    webhooks go to `webhook`, an address, or are only kept where that is empty.
    """

    search_lag_s: int = 0
    webhook: str = ""


@dataclass(slots=True)
class Origin:
    """The request that changes come from, as their events name it."""

    request_id: str | None = None
    idempotency_key: str | None = None


@dataclass(slots=True)
class Sandbox:
    """All state, behind one lock: `turn` is one request's transaction.

    `base`: the address at which a browser reaches the hosted pages. `on_delivery` is called after
    a turn that queued webhooks.
    """

    store: Store
    base: str
    on_delivery: Callable[[], None] = lambda: None
    origin: Origin = field(default_factory=Origin)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _queued: bool = False

    @contextmanager
    def turn(self, origin: Origin | None = None) -> Iterator[None]:
        """Runs a block alone and as one transaction."""
        with self._lock:
            self.origin, self._queued = origin or Origin(), False
            with self.store.transaction():
                yield
            queued = self._queued
        if queued:
            self.on_delivery()

    # Clock and settings

    def clock(self) -> FakeClock:
        """Returns the clock."""
        return FakeClock(**(self.store.value("clock") or {}))

    def set_clock(self, clock: FakeClock) -> None:
        """Sets the clock."""
        self.store.set_value("clock", asdict(clock))

    def now(self) -> int:
        """Returns the fake's Unix time in seconds."""
        return self.clock().now()

    def settings(self) -> Settings:
        """Returns what the control API has set."""
        return Settings(**(self.store.value("settings") or {}))

    def set_settings(self, settings: Settings) -> None:
        """Sets what the control API sets."""
        self.store.set_value("settings", asdict(settings))

    # Objects

    def make_id(self, prefix: str, length: int = 24) -> str:
        """Returns a new id, which nobody can guess."""
        return prefix + "".join(secrets.choice(_ALPHABET) for _ in range(length))

    def add(self, body: Json) -> Json:
        """Stores a new object, of the kind that its member `object` names."""
        self.store.insert(body["object"], body, self.now())
        return body

    def save(self, body: Json) -> Json:
        """Stores an object's new state."""
        self.store.replace(body, now=self.now(), search_lag_s=self.settings().search_lag_s)
        return body

    def load(self, kind: str, object_id: str, param: str = "id") -> Json:
        """Returns an object; raises `ApiError` (`resource_missing`) where there is none."""
        body = self.store.load(kind, object_id)
        if body is None:
            raise missing_object(kind.rpartition(".")[2].replace("_", ""), object_id, param)
        return body

    # Events

    def emit(self, event_type: str, body: Json, previous: Json | None = None) -> None:
        """Records an event of an object's state now, and queues its webhooks.

        `previous`: what the changed members were, for the events that say so.
        """
        data: Json = {"object": visible(body)}
        if previous is not None:
            data["previous_attributes"] = previous
        event = self.add(
            {
                "id": self.make_id("evt_"),
                "object": "event",
                "api_version": API_VERSION,
                "created": self.now(),
                "data": data,
                "livemode": False,
                "pending_webhooks": 1 if self.settings().webhook else 0,
                "request": {
                    "id": self.origin.request_id,
                    "idempotency_key": self.origin.idempotency_key,
                },
                "type": event_type,
            }
        )
        self._queue_webhooks(event)

    def _queue_webhooks(self, event: Json) -> None:
        flaws = choose_flaws(self.store.faults(), event["type"])
        kinds = {flaw["kind"]: flaw for flaw in flaws}
        for flaw in flaws:
            self.store.use_fault(flaw)
        due_at = time.time() + float(kinds.get("delay", {}).get("seconds", 0))
        copies = 1 + (int(kinds["duplicate"].get("copies", 1)) if "duplicate" in kinds else 0)
        state = "dropped" if "drop" in kinds else "held" if "hold" in kinds else "waiting"
        for _ in range(copies):
            self._queue(
                event,
                state=state,
                due_at=due_at,
                reorder="reorder" in kinds,
                flaw="stale" if "stale" in kinds else "",
            )
        if "forge" in kinds:
            self.forge(event)

    def _queue(
        self,
        event: Json,
        *,
        state: str = "waiting",
        due_at: float | None = None,
        reorder: bool = False,
        flaw: str = "",
    ) -> None:
        """Queues one delivery of an event.

        `reorder`: of those that are due in the next moment later ones are sent before earlier
        ones.
        """
        self.store.add_delivery(
            event=None if flaw == "forged" else event["id"],
            body=json.dumps(event, indent=2),
            due_at=(time.time() if due_at is None else due_at) + (_REORDERED_S if reorder else 0),
            state=state,
            last_first=reorder,
            flaw=flaw,
        )
        self._queued = True

    def resend(self, event: Json) -> None:
        """Queues one more delivery of an event."""
        self._queue(event)

    def forge(self, event: Json) -> None:
        """Queues what an attacker would send: an event that nobody made, signed by another key."""
        self._queue({**event, "id": self.make_id("evt_")}, flaw="forged")


def open_sandbox(file: Path | None, base: str) -> Sandbox:
    """Opens the state in a file (None: in memory), which is made where it does not exist."""
    return Sandbox(Store(file), base)


def visible(body: Json) -> Json:
    """Returns an object as the API shows it: without the fake's own members."""
    return {
        name: visible(value) if isinstance(value, dict) else value
        for name, value in body.items()
        if not name.startswith("_")
    }


def changed_members(before: Json, after: Json) -> Json:
    """Returns what the members were that changed, as `previous_attributes` has it."""
    shown = visible(after)
    return {name: value for name, value in visible(before).items() if shown.get(name) != value}


def merge_metadata(body: Json, changes: dict[str, str] | None) -> None:
    """Adds and replaces keys of an object's metadata, and removes those with an empty value."""
    if changes is not None:
        merged = {**body["metadata"], **changes}
        body["metadata"] = {key: value for key, value in merged.items() if value}
