"""`docs/reference/settings.md`, made from the settings themselves.

`python -m console.settings.reference` prints the page; a test compares it with the file.
"""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

from console.settings.config import SECTIONS, SHORTHANDS

_HEAD = """\
# Settings

One TOML file holds the settings of the whole service: `settings.toml` in the data folder, or the
file that `FRESHET_SETTINGS` names. It may be missing: every setting has a default, and the defaults
are those of one machine on embedded stand-ins. An unknown setting, a wrong type or a missing one
ends the start with its name.

In the environment the setting `name` of `[section]` is `FRESHET_SECTION_NAME`, and wins over the
file. `{home}` in a value stands for the data folder, `{port}` for `web.port`. A list is separated
by commas in the environment.

This page is made from the code: `python -m console.settings.reference`.

## The file as a whole

| Setting | Environment | Default | Meaning |
|---|---|---|---|
| | `FRESHET_HOME` | `freshet` in the user's data folder | The data folder. |
| | `FRESHET_SETTINGS` | `{home}/settings.toml` | The settings file. |
| `mode` | `FRESHET_MODE` | `"local"` | `local`: one person, one machine. `production` refuses to \
start without what strangers make necessary. |
| `secret_key` | `FRESHET_SECRET_KEY` | made at the first start, in `{home}/secret_key` | Signs \
sessions and links, seals second factors. 50 characters or more in production. |

PostgreSQL and Redis are embedded as long as `database.host` and `queue.url` have their defaults;
with any other value `make up` starts no server of its own for them.
"""


def settings_reference() -> str:
    """The page, with a table for each section."""
    parts = [_HEAD]
    short = {place: variable for variable, place in SHORTHANDS.items()}
    for name, section in SECTIONS.items():
        parts.append(f"\n## {name}\n\n{_first_line(section)}\n\n")
        parts.append("| Setting | Environment | Default | Meaning |\n|---|---|---|---|\n")
        for field in dataclasses.fields(section):
            variable = short.get((name, field.name), f"FRESHET_{name}_{field.name}".upper())
            cells = [
                f"`{name}.{field.name}`",
                f"`{variable}`",
                f"`{_toml(field.default)}`",
                field.metadata["doc"],
            ]
            parts.append(f"| {' | '.join(cells)} |\n")
    return "".join(parts)


def _first_line(section: type) -> str:
    return (section.__doc__ or "").splitlines()[0]


def _toml(value: object) -> str:
    """A default as it would stand in the file."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(_toml(each) for each in value)}]"
    if isinstance(value, Path) and value.is_absolute():  # within the checkout
        return f'"{value.relative_to(Path(__file__).parents[2])}"'
    if isinstance(value, str | Path):
        return f'"{value}"'
    return str(value)


if __name__ == "__main__":
    sys.stdout.write(settings_reference())
