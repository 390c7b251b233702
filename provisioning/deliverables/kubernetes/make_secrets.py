"""Makes the secrets of an installation.

usage: python -m provisioning.deliverables.kubernetes.make_secrets <overlay>/secrets

Secrets that may be random are made, once. Those that only the operator has are listed as missing.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable
from pathlib import Path

EXIT_COMPLETE = 0
EXIT_INCOMPLETE = 1
EXIT_USAGE = 2

CONTROL_PLANE = "control-plane.env"
# The lines of it that are made, and those that the operator must add.
MADE_LINES = ("FRESHET_SECRET_KEY", "FRESHET_DATABASE_APP_PASSWORD")
ASKED_LINES = {
    "FRESHET_QUEUE_URL": "the address of Redis or RabbitMQ, with its password",
    "FRESHET_MAIL_USER": "the user at the SMTP server",
    "FRESHET_MAIL_PASSWORD": "its password",
}
ASKED_FILES = {
    "outbound-queue-url": "the address of the queue for the worker of outbound calls, whose user"
    " reads the queue outbound and writes to the queue celery",
    "etcd-password": "the password of etcd's user freshet, which has the role root",
    "etcd-ca.crt": "the authority of etcd's certificates, in PEM",
    "s3-credentials": "an AWS shared-credentials file of the service's own parts",
    "brokers-s3-credentials": "an AWS shared-credentials file of brokers",
    "gateway.crt": "the gateways' certificate with its chain, in PEM",
    "gateway.key": "its private key, in PEM",
}


def make_secrets(folder: Path) -> list[str]:
    """Makes the secrets that do not exist; returns the missing ones, as a line of text each.

    It changes no file that exists. Raises `OSError`.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # 32 bytes in hex, the form that `brokers.secrets` reads.
    _make_file(folder / "cell-secret", lambda: secrets.token_hex(32) + "\n")
    _make_file(folder / "database-owner-password", lambda: secrets.token_urlsafe(32))
    _make_file(
        folder / CONTROL_PLANE,
        lambda: "".join(f"{name}={secrets.token_urlsafe(48)}\n" for name in MADE_LINES),
    )
    lines = (folder / CONTROL_PLANE).read_text(encoding="utf-8").splitlines()
    names = {line.partition("=")[0] for line in lines}
    missing = [
        f"{CONTROL_PLANE}: a line {name}=, {what}"
        for name, what in ASKED_LINES.items()
        if name not in names
    ]
    missing += [f"{name}: {what}" for name, what in ASKED_FILES.items() if not _has(folder, name)]
    return missing


def _has(folder: Path, name: str) -> bool:
    file = folder / name
    return file.exists() and file.stat().st_size > 0


def _make_file(file: Path, text: Callable[[], str]) -> None:
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text())


def main(arguments: list[str]) -> int:
    """Makes the secrets and prints what is missing; returns the exit status."""
    if len(arguments) != 1:
        sys.stderr.write(f"{__doc__}\n")
        return EXIT_USAGE
    missing = make_secrets(Path(arguments[0]))
    for line in missing:
        sys.stdout.write(f"missing: {line}\n")
    return EXIT_INCOMPLETE if missing else EXIT_COMPLETE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
