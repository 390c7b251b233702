"""How passwords are hashed: as Django does it, and never within a request's transaction."""

from __future__ import annotations

from django.contrib.auth.hashers import PBKDF2PasswordHasher
from typing_extensions import override

from console.base.common.transactions import require_outside


class PasswordHasher(PBKDF2PasswordHasher):
    """PBKDF2 with SHA-256. Services hash by `console.base.accounts.services.hashing`."""

    @override
    def encode(self, password: str, salt: str, iterations: int | None = None) -> str:
        """Returns the hash of a password. It takes tenths of a second of a core."""
        require_outside("the hash of a password")
        return super().encode(password, salt, iterations)
