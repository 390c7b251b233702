"""A flame graph: stacks as boxes, the outermost frame at the bottom, as wide as their samples."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

WIDTH = 1600.0
ROW = 16
# Narrower boxes cannot be seen.
WIDTH_MIN = 0.4
CHARACTER_WIDTH = 6.6
KERNEL_MARK = "_[k]"


@dataclass
class Box:
    """A frame under those below it, with the samples of all that it called."""

    samples: int = 0
    above: dict[str, Box] = field(default_factory=dict)


def flame_graph(stacks: Counter[tuple[str, ...]]) -> str:
    """An SVG of the stacks. Hovering over a box shows its name and share."""
    root = Box()
    for stack, count in sorted(stacks.items()):
        box = root
        box.samples += count
        for frame in stack:
            box = box.above.setdefault(frame, Box())
            box.samples += count
    height = (1 + max((len(stack) for stack in stacks), default=0)) * ROW
    boxes = "\n".join(_boxes(root, "all", 0.0, height - ROW, WIDTH / max(1, root.samples)))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH:.0f}" height="{height}" '
        f'font-family="monospace" font-size="11">\n{boxes}\n</svg>\n'
    )


def _boxes(box: Box, name: str, left: float, top: int, scale: float) -> Iterator[str]:
    width = box.samples * scale
    if width < WIDTH_MIN:
        return
    title = escape(f"{name} ({100 * width / WIDTH:.2f} %)")
    shown = escape(name[: int(width / CHARACTER_WIDTH)])
    yield (
        f'<g><title>{title}</title><rect x="{left:.1f}" y="{top}" width="{width:.1f}" '
        f'height="{ROW - 1}" fill="{_colour(name)}"/>'
        f'<text x="{left + 2:.1f}" y="{top + 12}">{shown}</text></g>'
    )
    for frame, above in box.above.items():
        yield from _boxes(above, frame, left, top - ROW, scale)
        left += above.samples * scale


def _colour(name: str) -> str:
    """The colour of a name, always the same: the kernel blue, the engine green, the rest warm."""
    shade = zlib.crc32(name.encode()) % 60
    if name.endswith(KERNEL_MARK):
        return f"hsl(210, 60%, {65 + shade // 4}%)"
    hue = 110 if "freshet_" in name else 25 + shade // 3
    return f"hsl({hue}, 60%, {60 + shade // 4}%)"
