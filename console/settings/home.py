"""The data folder and the secret that local mode makes in it. No Django."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path


def default_home(environ: Mapping[str, str]) -> Path:
    """Returns the folder `freshet` in the data folder that the platform gives a user."""
    if environ.get("XDG_DATA_HOME"):
        return Path(environ["XDG_DATA_HOME"]) / "freshet"
    if sys.platform == "darwin":
        return Path("~/Library/Application Support/freshet").expanduser()
    return Path("~/.local/share/freshet").expanduser()


def read_or_make_secret(file: Path) -> str:
    """Returns the secret in a file, which is made at the first call and readable by its owner only.

    Several processes may start at once: the first one to link its file wins, and all read that one.
    """
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as stream:
            stream.write(secrets.token_urlsafe(64))
        try:
            os.link(draft, file)
        except FileExistsError:
            pass  # another process was first
        finally:
            draft.unlink()
    return file.read_text(encoding="ascii").strip()
