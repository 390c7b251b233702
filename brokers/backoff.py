"""How long to wait before a broker is started again. The module is pure: it reads no clock."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Ends:
    """The latest ends of a broker: `unserved` in a row without serving, `short` after serving.

    `stood_down` counts how often it stood down since it last served for long.
    """

    unserved: int = 0
    short: int = 0
    stood_down: int = 0


@dataclass(frozen=True)
class Backoff:
    """The first start after an end is at once, the next after `first_s` seconds, then doubling.

    A broker that never served waits up to `max_s`. One that served helps its clients as soon as it
    is back, so it waits at most `served_max_s`; where it served for `quiet_s`, its end counts as a
    first one. One that stands down again and again helps nobody (its disk fails or is full): from
    `stand_downs_max` on it waits like one that never served.
    """

    first_s: float = 0.1
    max_s: float = 30.0
    served_max_s: float = 0.25
    quiet_s: float = 5.0
    stand_downs_max: int = 3

    def after(self, ends: Ends, served_s: float | None, *, stood_down: bool = False) -> Ends:
        """`ends` with one more, of a broker that served for `served_s` seconds; None: never."""
        if served_s is None:
            return replace(ends, unserved=ends.unserved + 1)
        before = Ends() if served_s >= self.quiet_s else ends
        return Ends(short=before.short + 1, stood_down=before.stood_down + stood_down)

    def stands_down_repeatedly(self, ends: Ends) -> bool:
        """Whether the broker stood down so often that another start at once does not help."""
        return ends.stood_down >= self.stand_downs_max

    def pause_s(self, ends: Ends) -> float:
        """Seconds to wait before the next start."""
        if ends.unserved:
            return min(self._doubled(ends.unserved), self.max_s)
        longest_s = self.max_s if self.stands_down_repeatedly(ends) else self.served_max_s
        return min(self._doubled(ends.short), longest_s)

    def _doubled(self, count: int) -> float:
        # Bounded before the power is taken: a broker may fail for months.
        return 0.0 if count <= 1 else self.first_s * 2.0 ** min(count - 2, 32)
