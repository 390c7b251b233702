"""The secret of a cell, and the secrets that are derived from it for each cluster.

Only the control plane, the keeper and the gateways know the cell's secret: a broker gets only the
secrets that are derived for its own cluster, a tenant gets none. A derived secret is
HMAC-SHA256 with the cell's secret as key over an ASCII label, in lowercase hex (64 characters). The
gateway derives the same in Rust.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import re
import tempfile
from pathlib import Path
from secrets import token_bytes

from brokers.errors import ConfigError

__all__ = [
    "create_cell_secret",
    "is_private",
    "link_secret",
    "metadata_password",
    "read_cell_secret",
    "super_password",
]

SECRET_BYTES = 32
# Read and written by the owner only.
PRIVATE = 0o600

# The super user of every managed cluster: the control plane and the keeper, as Kafka clients.
SUPER_USER = "__freshet"


def create_cell_secret(path: str | Path) -> bytes:
    """Returns the cell's secret, and makes it where there is none.

    The file appears at once and whole, as 64 hex digits with mode 0600, and an existing one is
    never overwritten: of several that create it at a time one wins, and all get its secret. The
    folder must exist. Raises `ConfigError` as `read_cell_secret` does, and `OSError`.
    """
    target = Path(path)
    if not target.exists():
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "w", encoding="ascii") as file:
                os.fchmod(file.fileno(), PRIVATE)
                file.write(token_bytes(SECRET_BYTES).hex() + "\n")
                file.flush()
                os.fsync(file.fileno())
            # A link, unlike a rename, fails where the name is taken.
            with contextlib.suppress(FileExistsError):
                os.link(name, target)
        finally:
            Path(name).unlink()
        _sync_folder(target.parent)
    return read_cell_secret(target)


def read_cell_secret(path: str | Path) -> bytes:
    """The cell's secret, 32 bytes.

    Raises `ConfigError` where the file is missing, open to others (`is_private`), or holds
    something else than 64 hex digits; the text names the file and never what it holds.
    """
    try:
        with Path(path).open(encoding="ascii") as file:
            status = os.fstat(file.fileno())
            text = file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a cell's secret"
        message = f"{path}: {reason}"
        raise ConfigError(message) from None
    if not is_private(status.st_mode, status.st_uid):
        mode = f"{status.st_mode & 0o777:04o}"
        message = f"{path}: mode {mode} opens the cell's secret to others, want 0600"
        raise ConfigError(message)
    if not re.fullmatch(r"[0-9a-fA-F]{64}", text):
        message = f"{path}: not a cell's secret, which is {2 * SECRET_BYTES} hex digits"
        raise ConfigError(message)
    return bytes.fromhex(text)


def is_private(mode: int, owner: int) -> bool:
    """Whether only a file's owner may read it; a file of root may be open to its group, too.

    That is how Kubernetes mounts a secret into a pod with `fsGroup`. The engine has the same rule.
    """
    others = mode & 0o077
    return others == 0 or (others == 0o040 and owner == 0)


def super_password(secret: bytes, cluster_id: str) -> str:
    """Password of the super user `__freshet` on the internal listener of a cluster's brokers."""
    return _derived(secret, f"super:{cluster_id}")


def metadata_password(secret: bytes, cluster_id: str) -> str:
    """Password of a cluster's brokers at the cell's etcd, where that asks for one."""
    return _derived(secret, f"metadata:{cluster_id}")


def link_secret(secret: bytes, cluster_id: str) -> str:
    """The secret that a gateway and a cluster's brokers prove to each other on their link, in hex.

    Broker settings and both sides of the link take these 64 digits as text.
    """
    return _derived(secret, f"link:{cluster_id}")


def _derived(secret: bytes, label: str) -> str:
    if len(secret) != SECRET_BYTES:
        message = f"a cell's secret has {SECRET_BYTES} bytes, not {len(secret)}"
        raise ConfigError(message)
    return hmac.new(secret, label.encode("ascii"), hashlib.sha256).hexdigest()


def _sync_folder(folder: Path) -> None:
    """Makes a new name in a folder durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
