"""The series of a cluster at a moment, from a sample: pure.

Series are `{"connections": <n>, "groups": {<group>: {<topic>: [<lag>, <lag in s>]}}, "topics":
{<topic>: [<bytes in per s>, <bytes out per s>, <records in per s>]}}`. A number is null where it is
not known. A cluster has at most `SERIES_MAX` of them: the largest, and of the others the sums (of
lags in seconds the greatest) under an empty name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import orjson

from console.base.runtime.texts import storable_name
from provisioning.cell.samples import CONNECTIONS, TOPICS, groups_at

SERIES_MAX = 5000
# The most bytes of all series of a cluster at a moment, whatever names they have.
SERIES_BYTES_MAX = 256 * 1024
NAME_CHARS_MAX = 249
# Where counters began anew, the time since then is not known; it is at most that between samples.
RESET_S_MAX = 60.0
OF_A_PAIR, OF_A_TOPIC = 2, 3

Series = dict[str, Any]
Counts = Mapping[str, Sequence[int]]
Pair = tuple[str, str]
Lag = tuple[int | None, float | None]
Entry = TypeVar("Entry")


def series_of(
    content: Mapping[str, Any], taken_at_ms: int, before: Counts, since_ms: int
) -> Series:
    """The series of a sample. `before`: the counters of topics at `since_ms`, where that is not 0.

    Without them rates are not known, and there are none.
    """
    counts: Counts = content.get(TOPICS, {})
    rates = _rates(counts, before, (taken_at_ms - since_ms) / 1000) if since_ms else {}
    return bounded_series(content.get(CONNECTIONS), _lags(content, taken_at_ms), rates)


def bounded_series(
    connections: int | None,
    lags: Mapping[Pair, Lag],
    rates: Mapping[str, Sequence[float]],
    *,
    series_max: int = SERIES_MAX,
    bytes_max: int = SERIES_BYTES_MAX,
) -> Series:
    """The largest `series_max` series, as long as they have at most `bytes_max` bytes of JSON."""
    while True:
        series = _largest(connections, lags, rates, series_max)
        if len(orjson.dumps(series)) <= bytes_max or series_max < OF_A_PAIR + OF_A_TOPIC:
            return series
        series_max //= 2


def hourly_series(minutes: Iterable[Series]) -> Series:
    """The series of an hour: lags and connections at their greatest, rates on average.

    A topic without a rate in a minute had none.
    """
    connections: int | None = None
    lags: dict[Pair, Lag] = {}
    sums: dict[str, list[float]] = {}
    count = 0
    for series in minutes:
        count += 1
        connections = _greater(connections, series["connections"])
        for group, topics in series["groups"].items():
            for topic, (lag, age) in topics.items():
                known = lags.get((group, topic), (None, None))
                lags[group, topic] = (_greater(known[0], lag), _greater(known[1], age))
        for topic, rates in series["topics"].items():
            sums[topic] = [a + b for a, b in zip(sums.get(topic, (0, 0, 0)), rates, strict=True)]
    rates = {
        topic: [round(rate / count, 3) for rate in of_topic] for topic, of_topic in sums.items()
    }
    return bounded_series(connections, lags, rates)


def _lags(content: Mapping[str, Any], taken_at_ms: int) -> dict[Pair, Lag]:
    """The sum of lags and the greatest age of each group's topics."""
    lags: dict[Pair, Lag] = {}
    for group in groups_at(content, taken_at_ms):
        for partition in group.get("partitions", ()):
            pair = _named(group["group"]), _named(partition["topic"])
            lag, age = lags.get(pair, (None, None))
            lags[pair] = (_added(lag, partition["lag"]), _greater(age, partition["lag_seconds"]))
    return lags


def _rates(counts: Counts, before: Counts, seconds: float) -> dict[str, list[float]]:
    """What was counted in a second. A counter that is smaller than before began anew."""
    if seconds <= 0:
        return {}
    rates: dict[str, list[float]] = {}
    for topic, now in counts.items():
        past = before.get(topic, (0,) * len(now))
        reset = any(a < b for a, b in zip(now, past, strict=False))
        passed = min(seconds, RESET_S_MAX) if reset else seconds
        grown = now if reset else [a - b for a, b in zip(now, past, strict=False)]
        if len(grown) == OF_A_TOPIC:
            rates[_named(topic)] = [round(number / passed, 3) for number in grown]
    return rates


def _largest(
    connections: int | None,
    lags: Mapping[Pair, Lag],
    rates: Mapping[str, Sequence[float]],
    series_max: int,
) -> Series:
    left = series_max - 1
    of_lags, of_rates = OF_A_PAIR * len(lags), OF_A_TOPIC * len(rates)
    if of_lags + of_rates <= left:
        kept_lags, kept_rates = dict(lags), dict(rates)
    else:
        # Each kind has the half, or what the other leaves of it; one of each kind is for the rest.
        for_rates = min(of_rates, max(left // 2, left - of_lags))
        for_lags = min(of_lags, left - for_rates)
        kept_lags = _summed_pairs(lags, for_lags // OF_A_PAIR)
        kept_rates = _summed_topics(rates, for_rates // OF_A_TOPIC)
    groups: dict[str, dict[str, Lag]] = {}
    for (group, topic), lag in kept_lags.items():
        groups.setdefault(group, {})[topic] = lag
    return {"connections": connections, "groups": groups, "topics": kept_rates}


def _summed_pairs(lags: Mapping[Pair, Lag], entries_max: int) -> dict[Pair, Lag]:
    def size(entry: tuple[Pair, Lag]) -> tuple[float, float, Pair]:
        (lag, age), pair = entry[1], entry[0]
        return (-(lag or 0), -(age or 0), pair)

    kept, rest = _split(sorted(lags.items(), key=size), entries_max, len(lags))
    if rest:
        lag: int | None = None
        age: float | None = None
        for _, (one_lag, one_age) in rest:
            lag, age = _added(lag, one_lag), _greater(age, one_age)
        kept[("", "")] = (lag, age)
    return kept


def _summed_topics(
    rates: Mapping[str, Sequence[float]], entries_max: int
) -> dict[str, Sequence[float]]:
    def size(entry: tuple[str, Sequence[float]]) -> tuple[float, str]:
        return (-(entry[1][0] + entry[1][1]), entry[0])

    kept, rest = _split(sorted(rates.items(), key=size), entries_max, len(rates))
    if rest:
        kept[""] = [round(sum(numbers), 3) for numbers in zip(*(r for _, r in rest), strict=True)]
    return kept


def _split(
    entries: Sequence[tuple[Any, Any]], entries_max: int, count: int
) -> tuple[dict[Any, Any], Sequence[tuple[Any, Any]]]:
    """The first entries and the rest, which is one entry more where there is any."""
    if count <= entries_max:
        return dict(entries), ()
    first = max(entries_max - 1, 0)
    return dict(entries[:first]), entries[first:]


def _named(name: str) -> str:
    return storable_name(name, NAME_CHARS_MAX)


def _greater(a: Any, b: Any) -> Any:  # noqa: ANN401 (a number, or None)
    return b if a is None else a if b is None else max(a, b)


def _added(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else a + b
