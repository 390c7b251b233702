"""Who is staff."""

from __future__ import annotations

from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from console.base.accounts.errors import StaffSecondFactorRequired
from console.base.accounts.models import User, UserSession
from console.base.common.errors import NotAuthenticated, PermissionDenied


class StaffOnly(BasePermission):
    """The session of somebody who runs the service, begun with a second factor."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Raises what says which: nobody is signed in, nobody of the staff, or without a code."""
        del view
        if not isinstance(request.auth, UserSession):
            raise NotAuthenticated
        user = request.user
        if not isinstance(user, User) or not user.is_staff:
            message = "Only who runs the service may do this."
            raise PermissionDenied(message)
        if not request.auth.second_factor:
            raise StaffSecondFactorRequired
        return True
