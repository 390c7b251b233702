"""Broker seconds are held against processes, broker by broker and window by window."""

from __future__ import annotations

import os
from dataclasses import replace

from provisioning.cell.drivers.process import Identity, identify_process
from tests.metering.proof.counting_proxy import unix_ms
from tests.metering.proof.lives import Lives, Seen, compare_lives, process_start_ms

MINUTE = 60_000
WINDOWS = {(0, MINUTE), (MINUTE, 2 * MINUTE)}
# It began at 10 s and ended at 90 s, which was known at 92 s.
PROCESS = Seen(slot=1, since_ms=10_000, first_ms=10_100, last_ms=89_900, until_ms=90_000)
INCARNATION = Seen(slot=1, since_ms=10_200, first_ms=10_200, last_ms=91_900, until_ms=92_000)


def seen(*incarnations: int) -> Lives:
    """The lives of one process in each slot from 1 on, with these incarnations in order."""
    lives = Lives()
    for slot, number in enumerate(incarnations, 1):
        lives.processes[slot, Identity(slot, f"boot/{slot}")] = replace(PROCESS, slot=slot)
        lives.incarnations[number] = replace(INCARNATION, slot=slot)
    return lives


def ends_of(lives: Lives) -> list[bool]:
    """Whether the ends of all processes and incarnations are known."""
    all_seen = [*lives.processes.values(), *lives.incarnations.values()]
    return [one.until_ms is not None for one in all_seen]


def test_seconds_of_each_broker_are_compared_apart():
    exact = {(7, 0, MINUTE): 49, (7, MINUTE, 2 * MINUTE): 30}
    verdict = compare_lives(exact, WINDOWS, seen(7))
    assert (verdict.over, verdict.short, verdict.short_at_ends) == (0, 0, 0)
    assert (verdict.billed, verdict.ran) == ({1: 79}, {1: 78})

    # What one broker has too much does not make good what another has too little.
    swapped = {(7, 0, MINUTE): 60, (8, 0, MINUTE): 40, (8, MINUTE, 2 * MINUTE): 29}
    verdict = compare_lives(swapped, WINDOWS, seen(7, 8))
    assert (verdict.over, verdict.short, verdict.short_at_ends) == (10, 0, 9 + 29)
    assert verdict.wrong == 10


def test_until_it_is_known_that_a_broker_ended_its_seconds_count():
    rows = {(7, 0, MINUTE): 50, (7, MINUTE, 2 * MINUTE): 32}
    assert compare_lives(rows, WINDOWS, seen(7)).over == 0
    rows[7, MINUTE, 2 * MINUTE] += 1
    assert compare_lives(rows, WINDOWS, seen(7)).over == 1


def test_a_window_that_a_broker_lived_through_has_no_excuse():
    lives = seen(7)
    lives.processes[1, Identity(1, "boot/1")].last_ms = 3 * MINUTE
    lives.incarnations[7].last_ms = 3 * MINUTE
    rows = {(7, 0, MINUTE): 49, (7, MINUTE, 2 * MINUTE): 59}
    assert compare_lives(rows, WINDOWS, lives).short == 1


def test_rows_of_nothing_that_was_seen_are_too_much():
    foreign = {(9, 0, MINUTE): 5, (7, 2 * MINUTE, 3 * MINUTE): 3}
    assert compare_lives(foreign, WINDOWS, seen(7)).over == 8


def test_looks_find_processes_and_incarnations_until_they_are_gone():
    lives, before_ms = Lives(), unix_ms()
    record = {"slot": 2, "state": "live"}
    lives.look({2: os.getpid()}, {"incarnation/00000000000000000007": record})
    (process,) = lives.processes.values()
    assert lives.process_of(lives.incarnations[7]) is process
    assert process.since_ms < before_ms <= process.first_ms
    assert ends_of(lives) == [False, False]

    lives.look({}, {"incarnation/00000000000000000007": {**record, "state": "sealed"}})
    assert ends_of(lives) == [True, True]
    assert lives.incarnations[7].was_fenced


def test_a_process_began_before_it_was_looked_at():
    own = identify_process(os.getpid())
    assert own is not None
    now_ms = unix_ms()
    assert now_ms - 3_600_000 < process_start_ms(own, now_ms) < now_ms
