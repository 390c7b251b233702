"""Tables of settings for their pages in `docs/reference`."""

from __future__ import annotations

from dataclasses import MISSING
from pathlib import Path

from brokers.settings.fields import Setting, settings_of
from brokers.settings.reading import Environment
from brokers.settings.writing import toml_value


def section_reference(
    name: str, kind: type, environment: Environment | None = None, *, root: Path | None = None
) -> str:
    """The part of a page on a section: its title, its purpose, and the table of its settings.

    A default that is a path below `root` is shown relative to it.
    """
    purpose = (kind.__doc__ or "").splitlines()[0]
    return f"\n## {name}\n\n{purpose}\n\n{settings_table(name, kind, environment, root=root)}"


def settings_table(
    name: str, kind: type, environment: Environment | None = None, *, root: Path | None = None
) -> str:
    """A row for each setting: its name, its variable where there is one, default and meaning."""
    titles = ["Setting", *(["Environment"] if environment else []), "Default", "Meaning"]
    rows = [titles, ["---"] * len(titles)]
    for entry in settings_of(kind).values():
        variable = [f"`{environment.variable(name, entry.name)}`"] if environment else []
        rows.append([f"`{name}.{entry.name}`", *variable, _default(entry, root), entry.rules.doc])
    lines = [f"| {' | '.join(row)} |" for row in rows]
    lines[1] = lines[1].replace(" ", "")
    return "".join(f"{line}\n" for line in lines)


def _default(setting: Setting, root: Path | None) -> str:
    """The default as a settings file would have it; empty where the setting must be set."""
    default = setting.default
    if default is MISSING:
        return ""
    if default is None:
        return "unset"
    if isinstance(default, Path) and root and default.is_relative_to(root):
        default = default.relative_to(root)
    return f"`{toml_value(default)}`"
