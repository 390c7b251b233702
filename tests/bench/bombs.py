"""A client at a steady rate while others send batches that decompress to 100 MiB and 2 GiB.

The victim's latencies are those of a paced load with its reader. The attackers, eight connections
of one process, are held to half a core. Before each bomb is a control run in which a loop burns
that half core, so that the victim's own client has the same time; a round's control is the median
of its control runs. `value` and `peer` are the victim's 99th percentile beside the worst bomb over
that of the control, ours and kafka1's. `details` has both percentiles, the broker's largest
resident memory in each run and its rise, and how often attackers were answered with which error
code.
"""

from __future__ import annotations

import contextlib
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from tests.bench import attack, paced, proc
from tests.bench.bomb_batches import BOMBS, MIB, Bomb
from tests.bench.held import HalfCore
from tests.bench.report import Report, progress
from tests.bench.rounds import Figures, Rounds, Samples, beside_earlier, median, summarize_sides
from tests.bench.sides import BEFORE, FRESHET, Side, chosen, running, work_folder
from tests.bench.topics import create_topic

SIDES = ("freshet", "kafka1")
PEER = "kafka1"
ROUNDS = 3
VICTIM = paced.Shape(partitions=10, record_bytes=1024)
RATE = 1_000
WARM_UP_SECONDS = 30.0
SECONDS = 20.0
ATTACKED = "attacked"
ATTACKERS = 8
ATTACK_BYTES_PER_S = 16 * MIB
CONTROL = "control"
KEPT = ("p50_ms", "p99_ms", "p999_ms", "end_to_end_p99_ms", "reached_share", "broker_cpus")

Attackers = Callable[[], contextlib.AbstractContextManager[Figures]]


def run(
    rounds: int | None = None,
    only: Sequence[str] | None = None,
    scale: float = 1.0,
    before: str | None = None,
) -> Report:
    """Runs the bench. `scale` shortens each measurement."""
    names = chosen(SIDES, only, before)
    turns = Rounds("bombs", names, rounds or ROUNDS, {"scale": scale})
    with tempfile.TemporaryDirectory(dir=work_folder()) as folder:
        files = _write_batches(Path(folder))
        samples = turns.play(lambda name: _measure(name, files, scale))
    return Report(
        bench=turns.bench,
        value=_worst(samples, FRESHET),
        unit="ratio",
        peer=_worst(samples, PEER),
        details={
            "rounds": turns.count,
            "attackers_held_by": _held_by(samples),
            "victim_p99_ms": _by_run(samples, "p99_ms"),
            "victim_p99_over_control": _by_run(samples, "p99_ratio"),
            "peak_rss_mb": _by_run(samples, "peak_rss_mb"),
            "peak_rss_rise_mb": _by_run(samples, "peak_rss_rise_mb"),
            "sides": summarize_sides(samples),
            "machine": turns.limits,
        },
        earlier=beside_earlier(samples, before, _worst(samples, BEFORE)),
    )


def _write_batches(folder: Path) -> dict[Bomb, Path]:
    """A file with the batch of each bomb, which is made before anything runs."""
    files = {bomb: folder / bomb.name for bomb in BOMBS}
    for bomb, file in files.items():
        size = file.write_bytes(bomb.batch())
        progress(f"{bomb.name}: a batch of {size} bytes")
    return files


def _measure(name: str, files: dict[Bomb, Path], scale: float) -> Figures:
    with HalfCore() as half_core, running(name) as side:
        paced.warm_up(side, VICTIM, round(RATE * WARM_UP_SECONDS * scale), RATE)
        create_topic(side, ATTACKED, ATTACKERS)
        progress(f"  attackers and loop are held by {half_core.held_by}")
        controls, beside = [], {}
        for bomb, file in files.items():
            controls.append(_beside(side, SECONDS * scale, half_core.burning))
            attackers = partial(_sending, side, half_core, file)
            beside[bomb.name] = seen = _beside(side, SECONDS * scale, attackers)
            progress(f"  {bomb.name}: { {key: round(v, 2) for key, v in seen.items()} }")
        control = {key: statistics.median(run[key] for run in controls) for key in controls[0]}
        for seen in beside.values():
            seen["p99_ratio"] = seen["p99_ms"] / control["p99_ms"]
        figures = {
            f"{run} {key}": value
            for run, seen in {CONTROL: control, **beside}.items()
            for key, value in seen.items()
        }
        return figures | {"held_by_cgroup": float(half_core.held_by == "cgroup")}


def _beside(side: Side, seconds: float, attackers: Attackers) -> Figures:
    """The victim's figures beside attackers, the broker's memory, and what the latter counted.

    The broker's memory rises with what it keeps of earlier runs, so its rise in this one is there
    too.
    """
    proc.wait_for_rest(side.pids)
    proc.forget_peak(side.pids)
    resident = proc.resident_mib(side.pids)
    with attackers() as counted:
        seen = paced.play_load(side, VICTIM, RATE, seconds)
    peak = proc.peak_resident_mib(side.pids)
    memory = {"peak_rss_mb": peak, "peak_rss_rise_mb": peak - resident}
    return {key: seen[key] for key in KEPT} | memory | counted


@contextlib.contextmanager
def _sending(side: Side, half_core: HalfCore, file: Path) -> Iterator[Figures]:
    """Attackers at work. What they were answered is in the figures once they have ended."""
    arguments = (side.bootstrap, ATTACKED, file, ATTACKERS, ATTACK_BYTES_PER_S)
    counted: Figures = {}
    with half_core.attacking(attack.__name__, *arguments) as answers:
        yield counted
    counted |= {f"answered_{code}": float(n) for code, n in answers.items()}


def _by_run(samples: Samples, figure: str) -> dict[str, dict[str, float | None]]:
    """The medians of a figure: side → control run or bomb."""
    runs = (CONTROL, *(bomb.name for bomb in BOMBS))
    return {
        name: {run: median(samples, name, f"{run} {figure}") for run in runs} for name in samples
    }


def _held_by(samples: Samples) -> str:
    by_cgroup = [median(samples, name, "held_by_cgroup") == 1.0 for name in samples]
    return "cgroup" if all(by_cgroup) else "nice"


def _worst(samples: Samples, name: str) -> float | None:
    ratios = [median(samples, name, f"{bomb.name} p99_ratio") for bomb in BOMBS]
    return max((ratio for ratio in ratios if ratio is not None), default=None)
