"""Writes `docs/reference/settings.md` from the settings themselves.

`python -m console.settings.reference` prints the page; a test compares it with the file.
"""

from __future__ import annotations

import sys
from pathlib import Path

from brokers.settings.fields import settings_of
from brokers.settings.reference import section_reference
from console.settings.config import ENVIRONMENT, Config

_WHOLE = settings_of(Config)
_HEAD = f"""\
# Settings

One TOML file holds the settings of the whole service: `settings.toml` in the data folder, or the
file that `FRESHET_SETTINGS` names. It may be missing: every setting has a default, and the defaults
are those of one machine on embedded stand-ins. An unknown setting, a wrong type or a missing one
ends the start with its name.

In the environment the setting `name` of `[section]` is `FRESHET_SECTION_NAME`, and wins over the
file. `{{home}}` in a value stands for the data folder, `{{port}}` for `web.port`. A list is \
separated
by commas in the environment.

This page is made from the code: `python -m console.settings.reference`.

## The file as a whole

| Setting | Environment | Default | Meaning |
|---|---|---|---|
| | `FRESHET_HOME` | `freshet` in the user's data folder | The data folder. |
| | `FRESHET_SETTINGS` | `{{home}}/settings.toml` | The settings file. |
| `mode` | `FRESHET_MODE` | `"local"` | {_WHOLE["mode"].rules.doc} |
| `secret_key` | `FRESHET_SECRET_KEY` | made at the first start, in `{{home}}/secret_key` | \
{_WHOLE["secret_key"].rules.doc} |

PostgreSQL and Redis are embedded as long as `database.host` and `queue.url` have their defaults;
with any other value `make up` starts no server of its own for them.
"""


def settings_reference() -> str:
    """Returns the page as Markdown, with a table for each section of the file."""
    sections = [member for member in settings_of(Config).values() if member.is_section]
    root = Path(__file__).parents[2]
    return _HEAD + "".join(
        section_reference(section.name, section.kind, ENVIRONMENT, root=root)
        for section in sections
    )


if __name__ == "__main__":
    sys.stdout.write(settings_reference())
