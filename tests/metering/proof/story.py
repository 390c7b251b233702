"""The whole story: tenants under load, faults, usage files that go astray, and the bill."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

from tests.metering.proof.agents import LIMIT_SECONDS, Agents
from tests.metering.proof.counting_proxy import unix_ms
from tests.metering.proof.kept import KeptCell, KeptTenant
from tests.metering.proof.limits import LimitCourse
from tests.metering.proof.lives import LifeWatch, LivesVerdict, judge_lives
from tests.metering.proof.load import Shape, TenantLoad
from tests.metering.proof.spark_runs import RollUp, Run, sum_runs
from tests.metering.proof.stored import stored_bytes
from tests.metering.proof.stored_time import TimeVerdict, judge_time
from tests.metering.proof.tenants import Cell, Tenant, TenantCell
from tests.metering.proof.unbilled import Unbilled, sort_unbilled
from tests.metering.proof.usage_folder import UsageFolder
from tests.metering.proof.verdict import Billed, Verdict, judge_tenant
from tests.metering.proof.versions import BLOCKS, SUMS, read_versions

TOPICS = ("orders", "clicks")
PARTITIONS = 3
AGENTS = ("agent-1", "agent-2")
# Agents are upgraded during the load, one after the other, then go back, and are upgraded again.
VERSIONS = (BLOCKS, SUMS, BLOCKS, SUMS)


@dataclass(frozen=True)
class Plan:
    """How long and how rough. `load_s`: seconds of load; `quiet_s`: of nothing after it, before
    brokers end. Kills fall at seeded moments; the first tenant's broker is never killed. `limits`:
    how often budgets act on each tenant; those of the last one refuse everything to the end.
    `versions`: of the rows that agents make, one after the other, each for as long; between two of
    them the agents differ. `scales`: brokers of each tenant's cluster, which a keeper runs; none:
    one each that runs directly. Of a cluster with several, brokers are paused and partitions are
    moved, `moves` times all of each; and it loses a broker and gets it again, `scalings` times."""

    seed: int
    load_s: float
    quiet_s: float
    broker_kills: int
    agent_kills: int
    limits: int = 0
    burst_records: int = 60
    pause_s: float = 0.1
    versions: tuple[int, ...] = VERSIONS
    scales: tuple[int, ...] = ()
    pauses: int = 0
    moves: int = 0
    scalings: int = 0


@dataclass
class Outcome:
    """The result of a story."""

    plan: Plan
    verdicts: list[Verdict]
    times: list[TimeVerdict]
    lives: list[LivesVerdict]
    seconds: dict[str, float]
    unbilled: Unbilled
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def wrong(self) -> int:
        """Bytes, and what else meters count, billed wrongly, or by mistake not at all."""
        return (
            sum(verdict.wrong for verdict in self.verdicts)
            + sum(moment.over + moment.short_when_quiet for moment in self.times)
            + sum(verdict.wrong for verdict in self.lives)
            + self.unbilled.others.total()
        )


class Story:
    """One run in a folder of its own, step by step."""

    def __init__(self, folder: Path, plan: Plan, say: Callable[[str], None]) -> None:
        self.plan, self.say = plan, say
        self.cell: Cell = (
            KeptCell(folder, plan.scales, plan.seed)
            if plan.scales
            else TenantCell(folder, tenants=3)
        )
        self.lives = LifeWatch(self.cell)
        self.agents = Agents(self.cell, plan.versions[0])
        self.usage = UsageFolder(folder / "usage", folder / "late", plan.seed)
        self.roll_up = RollUp(self.usage, folder / "rollups")
        self.facts: dict[str, Any] = {}
        self.seconds: dict[str, float] = {}
        self.created_ms = self.quiet_ms = 0
        self.courses: list[LimitCourse] = []
        self._draw = random.Random(f"{plan.seed} faults")
        self._began = time.monotonic()
        self._began_ms = unix_ms()

    def use(self) -> None:
        """Runs load and faults, waits, and stops the brokers; then agents record all of it.

        Raises `RuntimeError` where a client failed or an agent does not come to an end.
        """
        with contextlib.closing(self.agents), self.cell, self.lives:
            self.created_ms = unix_ms()
            for tenant in self.cell.tenants:
                tenant.create_topics(TOPICS, PARTITIONS)
            for name in AGENTS:
                self.agents.start(name)
            self._use()
            self._step("load")
            threading.Event().wait(self.plan.quiet_s)
            self.cell.learn_topics()
            self.cell.stop_brokers()
            self.agents.wait_until_all_is_recorded(self.cell, self.usage)
        self._step("quiet, and what agents had left")

    def _use(self) -> None:
        loads = [self._load(tenant) for tenant in self.cell.tenants]
        self.courses = [self._course(tenant) for tenant in self.cell.tenants]
        for load, course in zip(loads, self.courses, strict=True):
            load.start()
            course.start()
        self._faults()
        for course in self.courses:
            course.wait()
        for load in loads:
            load.stop_writing()
        for load in loads:
            load.stop_reading()
        self.quiet_ms = unix_ms()
        failures = [failure for load in loads for failure in load.progress.failures]
        failures += [failure for course in self.courses for failure in course.failures]
        if failures:
            message = f"the load failed: {failures[:5]}"
            raise RuntimeError(message)
        self.facts["limits"] = [
            {
                "kinds": [spell.kind for spell in course.spells],
                "slipped_bytes": course.slipped(),
                "records_refused": load.progress.refused,
                "throttled_ms": load.progress.throttled_ms,
            }
            for load, course in zip(loads, self.courses, strict=True)
        ]

    def _course(self, tenant: Tenant) -> LimitCourse:
        plan, store = self.plan, self.cell.metadata_of(tenant)
        is_last = tenant is self.cell.tenants[-1]
        return LimitCourse(tenant, store, plan.seed, plan.limits, plan.load_s, is_last)

    def _load(self, tenant: Tenant) -> TenantLoad:
        plan = self.plan
        shape = Shape(TOPICS, PARTITIONS, plan.burst_records, plan.pause_s)
        return TenantLoad(tenant, shape, plan.seed)

    def _faults(self) -> None:
        """Kills brokers and agents at seeded moments of the load."""
        strikes = self._strikes()
        moments = sorted(self._draw.uniform(0.1, 0.95) for _ in strikes)
        self._draw.shuffle(strikes)
        faults = [*zip(moments, strikes, strict=True), *self._changes()]
        began = time.monotonic()
        clock = threading.Event()
        for moment, strike in sorted(faults, key=itemgetter(0)):
            clock.wait(max(0.0, began + moment * self.plan.load_s - time.monotonic()))
            strike()
        clock.wait(max(0.0, began + self.plan.load_s - time.monotonic()))

    def _strikes(self) -> list[Callable[[], None]]:
        brokers = [
            self.cell.tenants[1 + number % 2].kill for number in range(self.plan.broker_kills)
        ]
        # Once everything that agents know is lost too.
        ways = [self.agents.kill, self.agents.forget]
        agents = [
            partial(ways[number == 1], AGENTS[number % len(AGENTS)])
            for number in range(self.plan.agent_kills)
        ]
        several = [t for t in self.cell.tenants if isinstance(t, KeptTenant) and t.spec.scale > 1]
        # The first tenant's bill has no excuse.
        mortal = [tenant for tenant in several if tenant is not self.cell.tenants[0]]
        pauses = [tenant.pause for tenant in mortal for _ in range(self.plan.pauses)]
        moves = [tenant.move for tenant in several for _ in range(self.plan.moves)]
        scalings = [t.scale_down_and_up for t in several for _ in range(self.plan.scalings)]
        return [*brokers, *agents, *pauses, *moves, *scalings]

    def _changes(self) -> Iterator[tuple[float, Callable[[], None]]]:
        """The moments at which an agent begins to make rows of the next version.

        Between two versions the first agent makes the new one and the second still the old one.
        """
        share = 1 / len(self.plan.versions)
        for number, version in enumerate(self.plan.versions[1:], 1):
            for name, later in zip(AGENTS, (-share / 4, share / 4), strict=True):
                before = self.plan.versions[number - 1]
                yield number * share + later, partial(self._change_version, name, before, version)

    def _change_version(self, name: str, before: int, version: int) -> None:
        """Changes an agent's version once there are rows of the one before, however long."""
        clock, deadline = threading.Event(), time.monotonic() + LIMIT_SECONDS
        while not read_versions(self.usage.files()).rows[before] and time.monotonic() < deadline:
            clock.wait(0.2)
        self.agents.change_version(name, version)

    def days(self) -> list[str]:
        """Every UTC day that the run touched."""
        first = datetime.fromtimestamp(self._began_ms / 1000, UTC).date()
        last = datetime.now(UTC).date()
        return [str(first + timedelta(days=n)) for n in range((last - first).days + 1)]

    def disturb(self) -> None:
        """Adds copies of files under other keys, some torn, some without their manifests."""
        self.facts["usage_files"] = len(self.usage.files())
        self.usage.double(0.5)
        self.usage.tear(3)
        self.facts |= {
            "files_doubled": self.usage.doubled,
            "files_torn": self.usage.torn,
            "files_without_manifest": self.usage.orphaned,
        }

    def roll(self, *, kill: bool, late: bool) -> tuple[Billed, Billed]:
        """Rolls up with late files, killed half-way, and twice.

        Returns what is billed then, and what is not.
        """
        days = self.days()
        if late:
            self.facts["files_late"] = self.usage.hold_back(0.3)
            early = sum_runs([self.roll_up.run(day) for day in days])
            judged = [self.judge(tenant, early) for tenant in self.cell.tenants]
            self.facts["over_while_files_were_late"] = sum(verdict.over for verdict in judged)
            self.usage.deliver()
            self._step("roll-up without what is late")
        if kill:
            self.roll_up.kill_half_way(days[-1])
            self.facts["roll_ups_killed"] = 1
            self._step("roll-up killed half-way")
        first = [self.roll_up.run(day) for day in days]
        self._step("roll-up")
        if kill:
            again = [self.roll_up.run(day) for day in days]
            self.facts["second_roll_up_differs"] = differing_days(first, again)
            self._step("roll-up again")
        self.facts["spark"] = [
            {name: run.report[name] for name in ("rows_read", "rows_distinct", "conflicts")}
            for run in first
        ]
        self.facts["oracle_agrees"] = all(run.agrees_with_oracle() for run in first)
        self.facts["damaged_inputs"] = sum(len(run.report["damaged_inputs"]) for run in first)
        return sum_runs(first), sum_runs(first, billed=False)

    def judge(self, tenant: Tenant, billed: Billed, unbilled: Billed | None = None) -> Verdict:
        """Compares what a tenant was billed with what was counted from outside."""
        return judge_tenant(tenant, self.cell.scan(tenant), billed, unbilled)

    def outcome(self, billed: Billed, unbilled: Billed) -> Outcome:
        """Compares all that was billed, and what was not, with what was counted from outside."""
        verdicts = [self.judge(tenant, billed, unbilled) for tenant in self.cell.tenants]
        times = []
        for tenant in self.cell.tenants:
            stored = stored_bytes(self.cell.scan(tenant))
            times.append(
                judge_time(
                    self.usage.files(),
                    tenant,
                    stored,
                    partitions=PARTITIONS,
                    created_ms=self.created_ms,
                    quiet_ms=self.quiet_ms,
                )
            )
        self._step("scan")
        lives = [
            judge_lives(self.usage, tenant, self.lives.lives[tenant.cluster_id])
            for tenant in self.cell.tenants
        ]
        self.facts["agent_kills"] = self.agents.kills
        self.facts["strikes"] = [tenant.struck() for tenant in self.cell.tenants]
        self.facts["versions"] = read_versions(self.usage.files()).details()
        nobody_pays = sort_unbilled(unbilled, self.cell.tenants)
        return Outcome(self.plan, verdicts, times, lives, self.seconds, nobody_pays, self.facts)

    def _step(self, name: str) -> None:
        now = time.monotonic()
        self.seconds[name] = round(now - self._began, 1)
        self._began = now
        self.say(f"{name}: {self.seconds[name]} s")


def cell_of(folder: Path, plan: Plan) -> Cell:
    """The cell that a plan asks for."""
    if plan.scales:
        return KeptCell(folder, plan.scales, plan.seed)
    return TenantCell(folder, tenants=3)


def differing_days(first: Sequence[Run], again: Sequence[Run]) -> int:
    """Days on which two runs over the same files do not say the same."""
    return sum(one.content != other.content for one, other in zip(first, again, strict=True))
