"""Where the broker's CPU time goes: `perf` on the release build while one kind of load runs.

`LOAD` chooses it: `produce` (unthrottled, 1 MiB batches), `fragmented` (100 producers, linger 0),
`storage` (a restarted broker read from the beginning), `storage_10` (the same by ten readers),
`tail` (ten readers at the end of a paced load). Stacks are unwound by DWARF, without the inlined
functions. `value` is CPU seconds per GiB under the profiler; `details` has the time by thread, by
module of the engine, and by function. The flame graph stays in `.bench/profile/<load>.svg`, the
folded stacks beside it.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

from tests.bench import proc
from tests.bench.flame import KERNEL_MARK, flame_graph
from tests.bench.generators import Load, Producing, run_light
from tests.bench.readers import Consuming, Reading, consume_records
from tests.bench.report import Report, progress
from tests.bench.sides import FRESHET, FreshetSide
from tests.bench.topics import create_topic
from tests.peer.jars import ROOT
from tests.peer.processes import bound_command

FOLDER = ROOT / ".bench" / "profile"
TOPIC = "profile"
PARTITIONS = 100
RECORD_BYTES = 1024
RECORDS = 1_000_000
WARM_UP_RECORDS = 100_000
FRAGMENTED_RATE = 10_000
TAIL_RATE = 20_000
PACED_SECONDS = 20
MANY_READERS = 10
SAMPLES_PER_SECOND = 499
STACK_BYTES = 16_384
SHOWN = 30
GIB = 2**30

HEAD = re.compile(r"^(?P<thread>.+?)\s+\d+(?:/\d+)?\s.*:\s*$")
FRAME = re.compile(r"^\s+[0-9a-f]+ (?P<symbol>.+?)(?:\+0x[0-9a-f]+)? \((?P<binary>[^()]*)\)$")
HASH = re.compile(r"::h[0-9a-f]{16}$")
MODULE = re.compile(r"freshet_(\w+(?:::[a-z_]\w*){0,2})")
SYSTEM_CALL, PAGE_FAULT = "do_syscall_64_[k]", "asm_exc_page_fault"
KERNEL = "[kernel.kallsyms]"

Stack = tuple[str, ...]


class Perf:
    """`perf record` on one process, from now until `stop`."""

    def __init__(self, pid: int, data: Path) -> None:
        data.parent.mkdir(parents=True, exist_ok=True)
        self.data = data
        self._process = subprocess.Popen(
            bound_command(
                [
                    *("perf", "record", "--quiet", "-F", str(SAMPLES_PER_SECOND), "-m", "16M"),
                    *("--call-graph", f"dwarf,{STACK_BYTES}"),
                    *("--output", str(data), "--pid", str(pid)),
                ]
            ),
            stdin=subprocess.DEVNULL,
        )

    def stop(self) -> None:
        """Ends recording."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait()

    def stacks(self) -> Counter[Stack]:
        """Samples by stack: the thread's name, then frames from the outermost in."""
        command = ["perf", "script", "--no-inline", "--fields", "comm,tid,time,ip,sym,dso"]
        with subprocess.Popen(
            [*command, "--input", str(self.data)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as script:
            assert script.stdout is not None
            return Counter(stacks_of(script.stdout))


def stacks_of(lines: Iterable[str]) -> Iterator[Stack]:
    """The stacks in the output of `perf script`."""
    thread = ""
    frames: list[str] = []
    for line in lines:
        if not line.strip():
            if thread:
                yield (thread, *reversed(frames))
            thread, frames = "", []
        elif (frame := FRAME.match(line)) and thread:
            frames.append(_name(frame["symbol"], frame["binary"]))
        elif head := HEAD.match(line):
            thread = head["thread"].strip()
    if thread:
        yield (thread, *reversed(frames))


def _name(symbol: str, binary: str) -> str:
    name = HASH.sub("", symbol)
    if binary == KERNEL:
        return f"{name}{KERNEL_MARK}"
    return f"[{Path(binary).name.strip('[]')}]" if name == "[unknown]" else name


def module_of(stack: Stack) -> str:
    """The engine's innermost module on a stack, and what the kernel did for it."""
    kernel = f" (kernel: {_entry_of(stack)})" if stack[-1].endswith(KERNEL_MARK) else ""
    for frame in reversed(stack):
        if match := MODULE.search(frame):
            return match[1] + kernel
    return f"{stack[0]}, no frame of the engine{kernel}"


def _entry_of(stack: Stack) -> str:
    """What the kernel was entered for: the system call, or what else it was."""
    for frame, within in pairwise(stack):
        if frame == SYSTEM_CALL:
            return within.removesuffix(KERNEL_MARK).removeprefix("__x64_sys_")
        if frame.startswith(PAGE_FAULT):
            return "page fault"
    return "interrupt"


def summary(stacks: Counter[Stack]) -> dict[str, dict[str, float]]:
    """Percent of all samples by thread, module, innermost function, and function anywhere."""
    threads, modules, own, within = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for stack, count in stacks.items():
        threads[re.sub(r"\d+$", "", stack[0])] += count
        modules[module_of(stack)] += count
        own[stack[-1]] += count
        for frame in set(stack[1:]):
            within[frame] += count
    total = max(1, stacks.total())
    return {
        what: {name: round(100 * n / total, 2) for name, n in counts.most_common(SHOWN)}
        for what, counts in (
            ("threads", threads),
            ("modules", modules),
            ("functions", own),
            ("functions_and_what_they_call", within),
        )
    }


def run(
    rounds: int | None = None,
    only: Sequence[str] | None = None,
    scale: float = 1.0,
    codec: str | None = None,
) -> Report:
    """Runs one load, `LOAD`, under `perf`. There are no rounds and no other side.

    With a `codec`, producers send what they send in `produce_throughput`. Raises `ValueError` for
    several codecs, and for one with `fragmented`, whose records are not compressed.
    """
    load = os.environ.get("LOAD", "produce")
    if codec is not None and (codec == "all" or load == "fragmented"):
        message = f"LOAD={load} cannot be profiled with CODEC={codec}: choose another of either"
        raise ValueError(message)
    play = LOADS[load]
    side = FreshetSide()
    try:
        side.start()
        create_topic(side, TOPIC, PARTITIONS)
        run_light(Load(side.bootstrap, TOPIC, WARM_UP_RECORDS, RECORD_BYTES))
        perf, cpu_seconds, gib = play(side, scale, codec)
    finally:
        side.close()
    progress("reading the profile")
    stacks = perf.stacks()
    folded = "".join(f"{';'.join(stack)} {count}\n" for stack, count in stacks.items())
    perf.data.with_suffix(".folded").write_text(folded)
    perf.data.with_suffix(".svg").write_text(flame_graph(stacks))
    perf.data.unlink()
    shares_by_kind = summary(stacks)
    for what, shares in shares_by_kind.items():
        rows = "".join(f"\n  {share:6.2f} %  {name}" for name, share in shares.items())
        progress(f"{what}:{rows}")
    return Report(
        bench="profile",
        value=round(cpu_seconds / gib, 3),
        unit="CPU-s/GiB",
        peer=None,
        details={
            "load": load,
            "codec": codec,
            "samples": stacks.total(),
            "gib": round(gib, 3),
            **shares_by_kind,
        },
    )


Played = tuple[Perf, float, float]


def _play_produce(side: FreshetSide, scale: float, codec: str | None) -> Played:
    records = round(RECORDS * scale)
    load = Load(side.bootstrap, TOPIC, records, RECORD_BYTES, codec=codec)
    return _under_perf(side, "produce", [load])


def _play_fragmented(side: FreshetSide, scale: float, codec: str | None) -> Played:
    records = round(FRAGMENTED_RATE * PACED_SECONDS * scale)
    load = Load(
        side.bootstrap,
        TOPIC,
        records,
        RECORD_BYTES,
        one_by_one=True,
        rate=FRAGMENTED_RATE,
        producers=100,
        codec=codec,
    )
    return _under_perf(side, "fragmented", [load])


def _play_tail(side: FreshetSide, scale: float, codec: str | None) -> Played:
    records = round(TAIL_RATE * PACED_SECONDS * scale)
    load = Load(side.bootstrap, TOPIC, records, RECORD_BYTES, rate=TAIL_RATE, codec=codec)
    reading = Reading(
        side.bootstrap, TOPIC, PARTITIONS, records, readers=MANY_READERS, from_end=True
    )
    return _under_perf(side, "tail", [load], reading)


def _play_storage(side: FreshetSide, scale: float, codec: str | None, readers: int = 1) -> Played:
    records = round(RECORDS * scale)
    run_light(Load(side.bootstrap, TOPIC, records, RECORD_BYTES, codec=codec))
    side.stop()
    side.start()
    whole = Reading(side.bootstrap, TOPIC, PARTITIONS, records + WARM_UP_RECORDS, readers)
    return _under_perf(side, "storage" if readers == 1 else f"storage_{readers}", [], whole)


def _under_perf(
    side: FreshetSide, name: str, loads: Sequence[Load], reading: Reading | None = None
) -> Played:
    """Plays a load with its readers; gives CPU seconds, rest included, and the GiB moved."""
    proc.wait_for_rest(side.pids)
    progress(f"{FRESHET}: {name} under perf")
    before = proc.usage(side.pids)
    perf = Perf(side.pids[0], FOLDER / f"{name}.perf")
    moved = sum(load.total_bytes for load in loads)
    readers = Consuming(reading) if reading is not None and loads else None
    for producing in [Producing(load) for load in loads]:
        producing.result()
    if readers is not None:
        moved += readers.result().total_bytes
    elif reading is not None:
        moved += consume_records(reading).total_bytes
    proc.wait_for_rest(side.pids)
    perf.stop()
    return perf, proc.usage(side.pids).since(before).cpu_seconds, moved / GIB


LOADS: dict[str, Callable[[FreshetSide, float, str | None], Played]] = {
    "produce": _play_produce,
    "fragmented": _play_fragmented,
    "tail": _play_tail,
    "storage": _play_storage,
    f"storage_{MANY_READERS}": partial(_play_storage, readers=MANY_READERS),
}
