"""What can be wrong with usage files."""

from __future__ import annotations


class UsageFormatError(ValueError):
    """A usage file, manifest or slot that is not what its format says; the text says why."""
