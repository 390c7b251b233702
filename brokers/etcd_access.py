"""The rights of a cluster's brokers in a cell's etcd: to read and write the cluster's own keys.

The user and its role have the cluster's id as their name. Beside these keys brokers may read only
the key that is the root itself, which no store ever writes: by that they see whether etcd answers.
The caller needs etcd's role `root`. etcd asks for passwords only once its `auth enable` was called.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping

from brokers.errors import InvalidError
from brokers.etcd import Etcd, range_end

__all__ = ["PASSWORD_FILE", "allow_cluster", "forbid_cluster"]

PASSWORD_FILE = "etcd-password"  # noqa: S105 (a file's name)
"""The name of the file with a broker's password, beside its settings."""

# Parts of etcd's error texts.
EXISTS = ("already exists",)
MISSING = ("not found", "not granted")


def allow_cluster(etcd: Etcd, cluster_id: str, password: str) -> None:
    """Makes the user of a cluster's brokers, with this password. Repeating it changes nothing.

    Raises `MetadataError`.
    """
    name = {"name": cluster_id}
    _ask(etcd, "auth/role/add", name, EXISTS)
    for permission in _permissions(etcd.location.root, cluster_id):
        _ask(etcd, "auth/role/grant", {**name, "perm": permission})
    try:
        _ask(etcd, "auth/user/add", {**name, "password": password})
    except InvalidError as error:
        if not _says(error, EXISTS):
            raise
        _ask(etcd, "auth/user/changepw", {**name, "password": password})
    _ask(etcd, "auth/user/grant", {"user": cluster_id, "role": cluster_id})


def forbid_cluster(etcd: Etcd, cluster_id: str) -> None:
    """Removes the user and the role, if there are any. Raises `MetadataError`."""
    _ask(etcd, "auth/user/delete", {"name": cluster_id}, MISSING)
    _ask(etcd, "auth/role/delete", {"role": cluster_id}, MISSING)


def _permissions(root: str, cluster_id: str) -> list[dict[str, str]]:
    own = f"{root}{cluster_id}/"
    return [
        {"permType": "READWRITE", "key": _coded(own.encode()), "range_end": _coded(range_end(own))},
        {"permType": "READ", "key": _coded(root.encode() or b"\0")},
    ]


def _ask(etcd: Etcd, path: str, body: Mapping[str, object], fine: tuple[str, ...] = ()) -> None:
    try:
        etcd.call(path, body)
    except InvalidError as error:
        if not _says(error, fine):
            raise


def _says(error: InvalidError, texts: tuple[str, ...]) -> bool:
    return any(text in str(error) for text in texts)


def _coded(data: bytes) -> str:
    return base64.b64encode(data).decode()
