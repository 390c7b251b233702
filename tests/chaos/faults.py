"""The faults of a run: what each one does to a cell, and which brokers it explains the end of."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.brokers.lanes import FENCED
from tests.chaos.cell import SLOTS, HurtCell, Place
from tests.faulty.faults import Faults
from tests.supervisor.run import wait_until

# A broker that has ended is found to be so within this time, after it was fenced.
FENCE_S = 30.0
# How long a broker that was fenced stays paused still.
ZOMBIE_S = 1.0
# Of the packets between all brokers.
LOSS_PERCENTS = (10, 20, 30)
HOUR_S = 3600.0
SYNC = Faults(errors={"fsync": "EIO"}, names="*.wal")
WRITE = Faults(errors={"write": "EIO"}, names="*.wal")
HANG = ("write", "fsync")
FULL = Faults(errors={"write": "ENOSPC", "create": "ENOSPC"})


@dataclass
class Happened:
    """A fault that was injected. Moments are those of the monotonic clock."""

    kind: str
    began: float
    ended: float = 0.0
    # When every client went on after it and the cell was whole; 0 where that never came.
    recovered: float = 0.0
    # Those whose end the fault explains.
    slots: frozenset[int] = frozenset()
    # Which brokers, how long.
    what: str = ""


@dataclass
class Injector:
    """Injects faults into a cell. Choices are by the seed alone."""

    cell: HurtCell
    random: random.Random
    happened: list[Happened] = field(default_factory=list)
    _never: threading.Event = field(default_factory=threading.Event)

    def inject(self, kind: str) -> Happened:
        """Lets one fault begin and end. The cell may still have to recover when it returns."""
        fault = Happened(kind, time.monotonic())
        self.happened.append(fault)
        try:
            KINDS[kind](self, fault)
        finally:
            fault.ended = time.monotonic()
        return fault

    def _choose(self) -> Place:
        """A broker that runs."""
        slot = self.random.randrange(SLOTS)
        return self._place(slot)

    def _place(self, slot: int) -> Place:
        places: list[Place] = []

        def is_found() -> bool:
            place = self.cell.places().get(slot)
            places.extend([place] if place else [])
            return place is not None

        wait_until(is_found, f"slot {slot} has a broker")
        return places[-1]

    def _hit(self, fault: Happened, *slots: int, more: str = "") -> None:
        fault.slots = frozenset(slots)
        fault.what = " ".join(filter(None, [f"slots {sorted(slots)}", more]))

    def _state(self, place: Place) -> str:
        return str(self.cell.incarnations()[place.incarnation]["state"])

    def _hold(self, seconds: float) -> None:
        """Lets a fault last."""
        self._never.wait(seconds)

    def kill_broker(self, fault: Happened) -> None:
        """Kills a broker."""
        place = self._choose()
        self._hit(fault, place.slot)
        os.kill(place.pid, signal.SIGKILL)

    def pause_broker(self, fault: Happened) -> None:
        """Pauses a broker until others have fenced it, and a while more."""
        place = self._choose()
        self._hit(fault, place.slot, more="until it is fenced")
        os.kill(place.pid, signal.SIGSTOP)
        try:
            wait_until(lambda: self._state(place) in FENCED, "a paused broker is fenced", FENCE_S)
            self._hold(ZOMBIE_S)
        finally:
            with contextlib.suppress(ProcessLookupError):  # the keeper replaced it
                os.kill(place.pid, signal.SIGCONT)

    def lose_packets(self, fault: Happened) -> None:
        """Loses some of the packets between all brokers."""
        places = [self._place(slot) for slot in range(SLOTS)]
        seconds, percent = self.random.uniform(3, 6), self.random.choice(LOSS_PERCENTS)
        self._hit(fault, *range(SLOTS), more=f"{percent} % for {seconds:.1f} s")
        pairs = [(one, other) for one in places for other in places if one is not other]
        self.cell.network.lose(pairs, percent)
        self._hold(seconds)
        fault.what += f", {self.cell.network.heal()} packets"

    def cut_one_way(self, fault: Happened) -> None:
        """Loses all packets between the controller and another broker in one direction.

        Two others have nothing to say to each other, so there would be no packets to lose.
        """
        places = [self._place(slot) for slot in range(SLOTS)]
        of_controller = self.cell.controller()
        [controller] = [place for place in places if place.incarnation == of_controller]
        other = self.random.choice([place for place in places if place is not controller])
        from_it, seconds = self.random.random() < 0.5, self.random.uniform(2, 5)
        source, target = (controller, other) if from_it else (other, controller)
        way = "from the controller" if from_it else "to the controller"
        self._hit(fault, source.slot, target.slot, more=f"{way} for {seconds:.1f} s")
        self.cell.network.lose([(source, target)], 100)
        self._hold(seconds)
        fault.what += f", {self.cell.network.heal()} packets"

    def _fail_disk(self, fault: Happened, faults: Faults) -> None:
        """Fails a broker's lane until the broker ends; in a quarter of all cases every lane."""
        place = self._choose()
        hits_all = self.random.random() < 0.25
        slots = range(SLOTS) if hits_all else [place.slot]
        self._hit(fault, *slots)
        folders = "*" if hits_all else self.cell.lane_folder(place.incarnation)
        with self._failing(Faults(errors=faults.errors, names=faults.names, folders=folders)):
            wait_until(lambda: self._has_ended(place), "a broker without a disk ends", FENCE_S)

    def _has_ended(self, place: Place) -> bool:
        identity = self.cell.identity(place.slot)
        return identity is None or identity.pid != place.pid

    @contextlib.contextmanager
    def _failing(self, faults: Faults) -> Iterator[None]:
        self.cell.disk.fail(faults)
        try:
            yield
        finally:
            self.cell.disk.heal()

    def fill_disk(self, fault: Happened) -> None:
        """Leaves no room."""
        self._fail_disk(fault, FULL)

    def fail_writes(self, fault: Happened) -> None:
        """EIO of writes."""
        self._fail_disk(fault, WRITE)

    def fail_syncs(self, fault: Happened) -> None:
        """EIO of fsync."""
        self._fail_disk(fault, SYNC)

    def hang_storage(self, fault: Happened) -> None:
        """Lets a broker's lane hang until others have fenced the broker, and a while more.

        In a quarter of all cases the lanes of all hang for a while, and nobody is to be fenced.
        """
        place, hits_all = self._choose(), self.random.random() < 0.25
        folders = "*" if hits_all else self.cell.lane_folder(place.incarnation)
        with self._failing(Faults(hangs=HANG, names="*.wal", folders=folders)):
            if hits_all:
                seconds = self.random.uniform(4, 8)
                fault.what = f"all slots for {seconds:.1f} s"
                self._hold(seconds)
                return
            self._hit(fault, place.slot, more="until it is fenced")
            wait_until(lambda: self._state(place) in FENCED, "a hanging broker is fenced", FENCE_S)
            self._hold(ZOMBIE_S)

    def shift_clock(self, fault: Happened) -> None:
        """Sets a broker's clock an hour ahead or back, and right again after a while."""
        place = self._choose()
        seconds, ahead = self.random.uniform(3, 6), self.random.choice([-HOUR_S, HOUR_S])
        # No fence is explained by it: nothing that brokers agree on depends on the time of day.
        fault.what = f"slot {place.slot} {ahead:+.0f} s for {seconds:.1f} s"
        self.cell.clocks.shift(place.pid, ahead)
        self._hold(seconds)
        self.cell.clocks.shift(place.pid, 0)

    def kill_etcd(self, _fault: Happened) -> None:
        """Kills etcd and starts it again after a moment."""
        self.cell.etcd.stop(signal.SIGKILL)
        self._hold(self.random.uniform(0, 2))
        self.cell.etcd.start()

    def kill_gateway(self, fault: Happened) -> None:
        """Kills a gateway."""
        gateway = self.random.choice(self.cell.gateways)
        fault.what = gateway.name
        gateway.kill()

    def kill_keeper(self, _fault: Happened) -> None:
        """Kills the keeper."""
        assert self.cell.keeper is not None
        self.cell.keeper.kill()


KINDS: dict[str, Callable[[Injector, Happened], None]] = {
    "broker killed": Injector.kill_broker,
    "broker paused": Injector.pause_broker,
    "packets lost": Injector.lose_packets,
    "cut one way": Injector.cut_one_way,
    "disk full": Injector.fill_disk,
    "write error": Injector.fail_writes,
    "sync error": Injector.fail_syncs,
    "storage hangs": Injector.hang_storage,
    "clock shifted": Injector.shift_clock,
    "etcd killed": Injector.kill_etcd,
    "gateway killed": Injector.kill_gateway,
    "keeper killed": Injector.kill_keeper,
}


def decks(chooser: random.Random) -> Iterator[str]:
    """Kinds of faults without end: all of them in some order, then all of them in another."""
    while True:
        yield from chooser.sample(sorted(KINDS), len(KINDS))
