"""Three tenants under a seeded load, every fault on the way to the bill, and no byte too many.

A keeper runs their clusters, two of them with three brokers, behind a gateway. Users produce and
fetch, and so does the service for an API key and a member. Budgets refuse the traffic of each
tenant for a time, and slow it; one tenant stays refused to the end. Partitions are moved, clusters
lose a broker and get it again, brokers are stopped until they are fenced. Brokers and agents are
killed, two agents do the same work, what they know is lost. They are upgraded to version
2 of usage rows one after the other, go back, and are upgraded again. Usage files come twice, late,
torn and in any order, the roll-up is killed half-way and run twice. What it bills is then held
against a scan of the log that shares no code with the engine, and against a proxy that counts what
clients are handed. `value` is the bytes that were billed wrongly, or by mistake not at all;
the aim is 0. `unbilled` names what nobody pays for: the service's own topics and user, apart.

`--minutes` is the length of all of it (default: ten), `SEED` another load and other faults,
`SCALES` other numbers of brokers; 0 is one for each cluster, without keeper and gateway.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

from tests.bench.report import Report, progress
from tests.bench.sides import FRESHET, chosen, work_folder
from tests.metering.proof.story import Outcome, Plan, Story

SIDES = (FRESHET,)
MINUTES = 10.0
# Scanning, four roll-ups and their start take about so long.
AFTERWARDS_S = 150.0
# Long enough for some minutes in which storage must be exact.
QUIET_S = 200.0
LOAD_S_MIN = 30.0
# The first tenant's bill has no excuse; the last one has a single broker, as most have.
SCALES = (3, 3, 1)
# How often budgets act on each tenant: for half of that time.
LIMIT_EVERY_S = 60.0


def run(
    rounds: int | None = None, only: Sequence[str] | None = None, minutes: float | None = None
) -> Report:
    """Runs the story once; `rounds` repeats it with other seeds and adds up."""
    chosen(SIDES, only)
    # The harness was pinned to one CPU; here nothing is compared by its speed.
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    seed = int(os.environ.get("SEED") or 1)
    outcomes = [one_story(plan(minutes or MINUTES, seed + number)) for number in range(rounds or 1)]
    return Report(
        bench="bill_exact",
        value=sum(outcome.wrong for outcome in outcomes),
        unit="bytes",
        peer=None,
        details={"stories": [details(outcome) for outcome in outcomes]},
    )


def plan(minutes: float, seed: int) -> Plan:
    """The plan of a story of so many minutes: load, faults and when they come."""
    left = max(0.0, 60 * minutes - AFTERWARDS_S)
    quiet = min(QUIET_S, left / 2)
    load = max(LOAD_S_MIN, left - quiet)
    kills = max(2, round(load / 20))
    limits = max(1, round(load / LIMIT_EVERY_S))
    return Plan(
        seed,
        load_s=load,
        quiet_s=quiet,
        broker_kills=kills,
        agent_kills=kills,
        limits=limits,
        scales=scales(),
        pauses=max(1, round(load / 60)),
        moves=max(1, round(load / 30)),
        scalings=max(1, round(load / 120)),
    )


def scales() -> tuple[int, ...]:
    """Brokers of each tenant's cluster."""
    given = os.environ.get("SCALES")
    return SCALES if given is None else tuple(filter(None, map(int, given.split(","))))


def one_story(plan: Plan) -> Outcome:
    """Plays a story in a folder of its own, which is removed unless bytes are wrong."""
    folder = work_folder() / "bill_exact"
    shutil.rmtree(folder, ignore_errors=True)
    progress(f"{plan}")
    story = Story(folder, plan, progress)
    story.use()
    story.disturb()
    outcome = story.outcome(*story.roll(kill=True, late=True))
    for verdict in outcome.verdicts:
        progress(f"{verdict.tenant.cluster_id}: {verdict.details()}")
    if not outcome.wrong:
        shutil.rmtree(folder, ignore_errors=True)
    return outcome


def details(outcome: Outcome) -> dict[str, object]:
    """All figures of a story, as `details` of the report has them."""
    return {
        "seed": outcome.plan.seed,
        "load_s": outcome.plan.load_s,
        "quiet_s": outcome.plan.quiet_s,
        "wrong": outcome.wrong,
        "tenants": {
            verdict.tenant.organization_id: {
                **verdict.details(),
                "time": {
                    "billed": dict(time.billed),
                    "at_most": dict(time.bound),
                    "over": time.over,
                    "short_when_quiet": time.short_when_quiet,
                    "billed_when_quiet": time.billed_when_quiet,
                },
                "broker_seconds": lives.details(),
            }
            for verdict, time, lives in zip(
                outcome.verdicts, outcome.times, outcome.lives, strict=True
            )
        },
        "unbilled": outcome.unbilled.details(),
        "facts": outcome.facts,
        "seconds": outcome.seconds,
    }
