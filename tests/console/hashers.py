"""A cheap hash of passwords that is as strict about transactions as the one of production."""

from django.contrib.auth.hashers import MD5PasswordHasher

from console.base.common.transactions import require_outside


class QuickHasher(MD5PasswordHasher):
    """MD5, so that tests need not wait."""

    def encode(self, password: str, salt: str) -> str:
        """Returns the hash of a password."""
        require_outside("the hash of a password")
        return super().encode(password, salt)
