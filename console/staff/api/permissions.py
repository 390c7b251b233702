"""Lets only staff use an endpoint."""

from __future__ import annotations

from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from console.base.accounts.errors import StaffSecondFactorRequired
from console.base.accounts.models import User, UserSession
from console.base.common.errors import NotAuthenticated, PermissionDenied


class StaffOnly(BasePermission):
    """Allows the session of a staff member that was begun with a second factor."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Returns True, or raises the error that says why not.

        Raises `NotAuthenticated` without a session, `PermissionDenied` where the person is not
        staff, `StaffSecondFactorRequired` where the session began without a second factor.
        """
        if not isinstance(request.auth, UserSession):
            raise NotAuthenticated
        user = request.user
        if not isinstance(user, User) or not user.is_staff:
            message = "Only staff of the service may do this."
            raise PermissionDenied(message)
        if not request.auth.second_factor:
            raise StaffSecondFactorRequired
        return True
