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
    """The part of a page on a section: its title, what it is, and its settings.

    A default below `root` is shown from there on.
    """
    purpose = (kind.__doc__ or "").splitlines()[0]
    return f"\n## {name}\n\n{purpose}\n\n{settings_table(name, kind, environment, root=root)}"


def settings_table(
    name: str, kind: type, environment: Environment | None = None, *, root: Path | None = None
) -> str:
    """A row for each setting: its name, its variable where there is one, default and meaning."""
    titles = ["Setting", *(["Environment"] if environment else []), "Default", "Meaning"]
    rows = [titles, ["---"] * len(titles)]
    for each in settings_of(kind).values():
        variable = [f"`{environment.variable(name, each.name)}`"] if environment else []
        rows.append([f"`{name}.{each.name}`", *variable, _default(each, root), each.rules.doc])
    lines = [f"| {' | '.join(row)} |" for row in rows]
    lines[1] = lines[1].replace(" ", "")
    return "".join(f"{line}\n" for line in lines)


def _default(setting: Setting, root: Path | None) -> str:
    """As it would stand in the file; empty where it must be set."""
    default = setting.default
    if default is MISSING:
        return ""
    if default is None:
        return "unset"
    if isinstance(default, Path) and root and default.is_relative_to(root):
        default = default.relative_to(root)
    return f"`{toml_value(default)}`"
