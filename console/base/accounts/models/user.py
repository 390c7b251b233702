"""Users: the people who sign in."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.db import models
from django.db.models.functions import Lower

from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX, new_id


class UserManager(BaseUserManager["User"]):
    """Finds users by e-mail address, whatever its case. Services create users, not this manager."""

    def get_by_natural_key(self, username: str | None) -> User:
        """Returns the user of an address. Raises `User.DoesNotExist`."""
        return self.get(email=normal_email(username or ""))


def normal_email(email: str) -> str:
    """Returns an address as it is stored and compared: in lower case, without surrounding space."""
    return email.strip().lower()


class User(AbstractBaseUser):
    """A person who signs in, and belongs to organizations through memberships."""

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "usr"), editable=False
    )
    email = models.EmailField(unique=True, max_length=254)
    name = models.CharField(max_length=100, blank=True)
    email_verified_at = models.DateTimeField(null=True, blank=True)
    is_active = models.BooleanField(default=True)
    # Whether the person runs the service: staff see cells and operations, never a tenant's records.
    is_staff = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=now)
    # When the password was set last: browsers that signed in earlier are no known devices any more.
    devices_since = models.DateTimeField(null=True, blank=True)

    objects = UserManager()

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=models.Q(email=Lower("email")), name="email_in_lower_case"
            ),
        )

    def __str__(self) -> str:
        return self.email
