"""`docs/reference/limits.md`, made from the registry.

`python -m console.base.limits.reference` prints the page; a test compares it with the file.
"""

from __future__ import annotations

import dataclasses
import sys
import tomllib

from brokers import _core
from console.base.limits.choices import LimitScope
from console.base.limits.registry import LIMITS, Limit
from console.settings.sections import Limits

_HEAD = """\
# Limits

What is enforced, and what happens at each. `GET /api/v1/limits` shows an organization's own values
with what it uses; whoever needs more asks with `POST /api/v1/limit-requests`. A problem that names
a limit has it as `quota`, with its value and what was used.

Where Freshet runs for itself, the defaults are settings of the section `limits`.

This page is made from the code: `python -m console.base.limits.reference`.
"""
_TITLES = {
    LimitScope.ORGANIZATION: "Of an organization",
    LimitScope.CLUSTER: "Of a cluster",
    LimitScope.ADDRESS: "Of an address",
}
_MEMORY_HEAD = """
## Of a broker's memory

What a broker takes is bounded by the sum of these, whatever its clients and its disk do, by the
limit `group_bytes` and 64 MiB for writes of groups that wait for the disk, and by some 40 MiB for
itself, 40 KiB for each connection, 20 KiB for each partition, 100 MiB for the producers that it
remembers, 128 MiB while segments are joined or compacted, and 32 MiB that long reads leave for the
next ones. A request of one large batch among small ones takes half as much again until it is
written. Under a load that changes the allocator may keep as much again as is in use. Each is a
[setting](broker-settings.md); [metrics](metrics.md) measure the same parts. Where fetches wait for
memory, a client that holds some and takes nothing for 10 s loses its connection.

| Memory | Setting | Default | What happens |
|---|---|---|---|
"""
_MIB = 1 << 20
# What the memory is for, the setting that bounds it, how many times that is used at once, and what
# happens at the bound. Rows with 0 times are part of another row, and not added to the sum.
_MEMORY = (
    ("Requests not answered or written", "limits.in_flight_bytes", 1, "Further ones are not read."),
    ("Of these, what waits for the disk", "lane.queue_bytes_max", 0, "Producers wait."),
    ("The newest batches", "cache.hot_bytes", 1, "The oldest of them are read from storage."),
    ("Newest records on their way to clients", "limits.fetch_bytes", 1, "Fetches wait."),
    ("Older records on their way to clients", "limits.catch_up_fetch_bytes", 1, "Fetches wait."),
    ("Blocks of lanes and objects", "reads.block_bytes", 1, "More are read for one client each."),
    ("What is split, and its object", "lane.file_bytes_max", 2, "More is split in further turns."),
    ("Keys of a topic that is compacted", "jobs.compaction_keys_bytes", 1, "It takes more rounds."),
)


def memory_reference() -> str:
    """Returns the page's section on a broker's memory."""
    settings = tomllib.loads(_core.default_settings())
    parts, total = [_MEMORY_HEAD], 0
    for what, setting, times, effect in _MEMORY:
        section, _, name = setting.partition(".")
        mib = int(settings[section][name]) * max(times, 1) // _MIB
        total += mib if times else 0
        bound = f"`{setting}`" if times <= 1 else f"{times} × `{setting}`"
        parts.append(f"| {what} | {bound} | {mib} MiB | {effect} |\n")
    parts.append(f"| All | | {total} MiB | |\n")
    return "".join(parts)


def limits_reference() -> str:
    """Returns the page, with a table for each scope."""
    parts = [_HEAD]
    defaults = {field.name: int(str(field.default)) for field in dataclasses.fields(Limits)}
    for scope, title in _TITLES.items():
        parts.append(f"\n## {title}\n\n")
        parts.append("| Limit | Default | Can be raised | What happens |\n|---|---|---|---|\n")
        limits = [limit for limit in LIMITS if limit.scope is scope]
        limits.sort(key=lambda limit: limit.name)
        parts += [_limit_row(limit, defaults[limit.name]) for limit in limits]
    parts.append(memory_reference())
    return "".join(parts)


def _limit_row(limit: Limit, default: int) -> str:
    raisable = "yes" if limit.raisable else "no"
    return f"| `{limit.name}` | {default} {limit.unit} | {raisable} | {limit.effect} |\n"


if __name__ == "__main__":
    sys.stdout.write(limits_reference())
