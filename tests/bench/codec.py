"""The option `CODEC` of a bench: how producers compress.

Nothing here imports what a clean checkout has not installed: the option is checked before set-up.
"""

from __future__ import annotations

# In the order of the numbers that a batch's attributes have for them.
NAMES = ("none", "gzip", "snappy", "lz4", "zstd")
DEFAULT = "none"
# What `all` stands for: no compression, the fastest codec, and the one that new clients choose.
ALL = ("none", "lz4", "zstd")


def codecs_of(choice: str | None) -> list[str]:
    """The codecs that a bench runs with: one by its name, those of `all`, or the default.

    Raises `ValueError` if there is no such codec.
    """
    if choice == "all":
        return list(ALL)
    if choice is not None and choice not in NAMES:
        names, some = ", ".join(NAMES), ", ".join(ALL)
        message = f"no such codec: {choice}; there are {names}, and all, which is {some}"
        raise ValueError(message)
    return [choice or DEFAULT]
