"""Errors of the format of usage files."""

from __future__ import annotations


class UsageFormatError(ValueError):
    """A usage file, manifest, slot, statement or key has not its format; the text says why."""
