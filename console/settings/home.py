"""The data folder and the secrets that local mode makes in it. No Django."""

from __future__ import annotations

import hashlib
import hmac
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


def derive_mail_token(secret_key: str) -> str:
    """Returns the token of the page of local mail, which `make up` prints in a link.

    It is derived from Django's secret key, so it stays the same and is stored nowhere.
    """
    return hmac.new(secret_key.encode(), b"freshet.local_mail", hashlib.sha256).hexdigest()[:32]
