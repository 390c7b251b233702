"""Begins, lists and ends the console's sessions.

Django's session row belongs to the browser's cookie; our `UserSession` row says whose it is. A
session is valid while both rows exist: deleting ours ends it at once, in every process.
"""

from __future__ import annotations

from datetime import timedelta

from django.contrib import auth
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from console.base.accounts.models import User, UserSession
from console.base.accounts.models.session import USER_AGENT_CHARS_MAX
from console.base.accounts.services.memberships import organizations_of
from console.base.accounts.services.people import audit_person
from console.base.common.clock import now
from console.base.common.conf import config
from console.base.common.errors import NotFound
from console.base.common.requests import client_address

# The key in Django's session under which the id of the person's current organization is stored.
SESSION_ORGANIZATION = "organization_id"
LAST_SEEN_STEP = timedelta(minutes=5)
# The most sessions of one user; a further one ends the oldest.
SESSIONS_MAX = 100


def begin_session(*, request: HttpRequest, user: User, second_factor: bool = False) -> UserSession:
    """Signs in a user who has just proved who they are, under a new session key."""
    UserSession.objects.filter(session_key=request.session.session_key).delete()
    auth.login(request, user, backend="django.contrib.auth.backends.ModelBackend")
    # Django would keep the session key of a user who was signed in already.
    request.session.cycle_key()
    session = UserSession.objects.create(
        user=user,
        session_key=request.session.session_key or "",
        second_factor=second_factor,
        expires_at=now() + timedelta(days=config().web.session_days),
        address=client_address(request)[:64],
        user_agent=_user_agent(request),
    )
    oldest = UserSession.objects.filter(user=user).order_by("-created_at", "-id")
    _delete_sessions(oldest.filter(pk__in=list(oldest.values_list("pk", flat=True)[SESSIONS_MAX:])))
    audit_person(
        user=user,
        action="session.begin",
        address=session.address,
        detail={"session": session.pk, "second_factor": second_factor},
    )
    return session


def current_session(request: HttpRequest) -> UserSession | None:
    """Returns the session of a request's cookie, with its user; None if nobody is signed in.

    Django's session, which it reads, becomes invalid when the user's password changes.
    """
    user = getattr(request, "user", None)
    if not isinstance(user, User) or not user.is_active:
        return None
    session = UserSession.objects.filter(
        session_key=request.session.session_key, user=user, expires_at__gt=now()
    ).first()
    if session is None:
        return None
    session.user = user
    _note_seen(session, client_address(request)[:64])
    return session


def sessions_of(user: User) -> QuerySet[UserSession]:
    """Returns a user's sessions that have not expired."""
    return UserSession.objects.filter(user=user, expires_at__gt=now())


def end_session(*, user: User, session_id: str, address: str) -> None:
    """Ends one of a user's sessions; open streams of it end within seconds. Raises `NotFound`."""
    if not _delete_sessions(UserSession.objects.filter(pk=session_id, user=user)):
        raise NotFound
    audit_person(user=user, action="session.end", address=address, detail={"session": session_id})


def end_sessions(*, user: User, but_for: UserSession | None, address: str) -> int:
    """Ends all of a user's sessions except `but_for`; returns how many."""
    others = UserSession.objects.filter(user=user)
    if but_for is not None:
        others = others.exclude(pk=but_for.pk)
    ended = _delete_sessions(others)
    if ended:
        audit_person(
            user=user, action="session.end_others", address=address, detail={"ended": ended}
        )
    return ended


def sign_out(*, request: HttpRequest) -> None:
    """Ends the request's session and deletes its data."""
    session = current_session(request)
    if session is not None:
        end_session(user=session.user, session_id=session.pk, address=client_address(request))
    auth.logout(request)


def switch_organization(*, request: HttpRequest, user: User, organization_id: str) -> None:
    """Has the session work in another of the user's organizations. Raises `NotFound`."""
    ids = {membership.organization_id for membership in organizations_of(user)}
    if organization_id not in ids:
        raise NotFound
    request.session[SESSION_ORGANIZATION] = organization_id


def renew_session(*, request: HttpRequest, session: UserSession) -> None:
    """Gives the session a new key, and keeps it valid after a change of the user's password."""
    auth.update_session_auth_hash(request, session.user)
    request.session.save()
    session.session_key = request.session.session_key or ""
    session.save(update_fields=["session_key"])


def purge_sessions() -> int:
    """Deletes sessions that have expired; returns how many."""
    return _delete_sessions(UserSession.objects.filter(expires_at__lte=now()))


def _delete_sessions(sessions: QuerySet[UserSession]) -> int:
    """Deletes our rows and Django's of these sessions; returns how many sessions there were."""
    keys = list(sessions.values_list("session_key", flat=True))
    if keys:
        UserSession.objects.filter(session_key__in=keys).delete()
        Session.objects.filter(session_key__in=keys).delete()
    return len(keys)


def _note_seen(session: UserSession, address: str) -> None:
    """Writes the last use after the request has committed.

    It is written at most once in `LAST_SEEN_STEP`, unless the address changed.
    """
    recent = now() - session.last_seen_at < LAST_SEEN_STEP
    if not recent or session.address != address:
        transaction.on_commit(lambda: _write_last_seen(session.pk, address), robust=True)


def _write_last_seen(session_id: str, address: str) -> None:
    at = now()
    stale = Q(last_seen_at__lte=at - LAST_SEEN_STEP) | ~Q(address=address)
    UserSession.objects.filter(stale, pk=session_id).update(last_seen_at=at, address=address)


def _user_agent(request: HttpRequest) -> str:
    """Returns the printable characters of the browser's `User-Agent`, cut off at the maximum."""
    header = request.headers.get("User-Agent", "")[:USER_AGENT_CHARS_MAX]
    return "".join(character for character in header if character.isprintable())
