"""Charts of plain text, for whoever watches a bench."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

BARS = " ▁▂▃▄▅▆▇█"
BAR_WIDTH = 60


def second_by_second(counts: Sequence[int], full: float) -> str:
    """One character for each second, as high as its count is of `full`; more is shown as full."""
    top = len(BARS) - 1
    # Any record at all can be seen.
    heights = (min(top, max(bool(count), round(count / full * top))) for count in counts)
    return "".join(BARS[height] for height in heights)


def longest_gaps(gaps_ms: Mapping[str, Sequence[float]]) -> str:
    """A bar for the longest gap of each side, in ms, in proportion."""
    worst = {name: max(gaps) for name, gaps in gaps_ms.items()}
    full = max(worst.values())
    return "\n".join(
        f"  {name:>10} {'█' * max(1, round(BAR_WIDTH * gap / full))} {gap:.0f} ms"
        for name, gap in worst.items()
    )
