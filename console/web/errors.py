"""Errors of what belongs to no other application. Codes never change."""

from __future__ import annotations

from console.base.common.errors import PermissionDenied


class MailTokenRequired(PermissionDenied):
    """The browser has not shown the token of the page of local mail, or showed another one."""

    code = "mail_token_required"
    title = "Open the link that the start of the service printed"
