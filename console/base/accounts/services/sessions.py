"""The console's sessions: begun, listed, ended.

Django's session holds what the browser's cookie stands for; a row of ours (`UserSession`) says
whose it is. A session is good while both are there: deleting the row ends it at once, everywhere.
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

# The session's member that names the organisation that the person works in.
SESSION_ORGANIZATION = "organization_id"
LAST_SEEN_STEP = timedelta(minutes=5)
# Of one user: beyond it the oldest end.
SESSIONS_MAX = 100


def begin_session(*, request: HttpRequest, user: User, second_factor: bool = False) -> UserSession:
    """Signs in somebody who has just proved who they are, under a fresh key of the session."""
    UserSession.objects.filter(session_key=request.session.session_key).delete()
    auth.login(request, user, backend="django.contrib.auth.backends.ModelBackend")
    # Django keeps the key of who was signed in already.
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
    _end(oldest.filter(pk__in=list(oldest.values_list("pk", flat=True)[SESSIONS_MAX:])))
    audit_person(
        user=user,
        action="session.begin",
        address=session.address,
        detail={"session": session.pk, "second_factor": second_factor},
    )
    return session


def current_session(request: HttpRequest) -> UserSession | None:
    """The session of a request's cookie, with its user; None if nobody is signed in.

    Reads the request's Django session, which ends by itself with the user's password.
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
    """Where a user is signed in."""
    return UserSession.objects.filter(user=user, expires_at__gt=now())


def end_session(*, user: User, session_id: str, address: str) -> None:
    """Ends one of a user's sessions; open streams of it end within seconds. Raises `NotFound`."""
    if not _end(UserSession.objects.filter(pk=session_id, user=user)):
        raise NotFound
    audit_person(user=user, action="session.end", address=address, detail={"session": session_id})


def end_sessions(*, user: User, but_for: UserSession | None, address: str) -> int:
    """Ends a user's sessions, but for one if it is given; gives how many."""
    others = UserSession.objects.filter(user=user)
    if but_for is not None:
        others = others.exclude(pk=but_for.pk)
    ended = _end(others)
    if ended:
        audit_person(
            user=user, action="session.end_others", address=address, detail={"ended": ended}
        )
    return ended


def sign_out(*, request: HttpRequest) -> None:
    """Ends the session and forgets what it held."""
    session = current_session(request)
    if session is not None:
        end_session(user=session.user, session_id=session.pk, address=client_address(request))
    auth.logout(request)


def switch_organization(*, request: HttpRequest, user: User, organization_id: str) -> None:
    """Makes another of the user's organisations the session's. Raises `NotFound`."""
    if organization_id not in {each.organization_id for each in organizations_of(user)}:
        raise NotFound
    request.session[SESSION_ORGANIZATION] = organization_id


def renew_session(*, request: HttpRequest, session: UserSession) -> None:
    """Gives the session another key, and has it outlive a change of the user's password."""
    auth.update_session_auth_hash(request, session.user)
    request.session.save()
    session.session_key = request.session.session_key or ""
    session.save(update_fields=["session_key"])


def purge_sessions() -> int:
    """Deletes sessions that have expired; gives how many."""
    return _end(UserSession.objects.filter(expires_at__lte=now()))


def _end(sessions: QuerySet[UserSession]) -> int:
    keys = list(sessions.values_list("session_key", flat=True))
    if keys:
        UserSession.objects.filter(session_key__in=keys).delete()
        Session.objects.filter(session_key__in=keys).delete()
    return len(keys)


def _note_seen(session: UserSession, address: str) -> None:
    """Has the last use written after the request, at most once in some minutes an address."""
    recent = now() - session.last_seen_at < LAST_SEEN_STEP
    if not recent or session.address != address:
        transaction.on_commit(lambda: _write_last_seen(session.pk, address), robust=True)


def _write_last_seen(session_id: str, address: str) -> None:
    at = now()
    stale = Q(last_seen_at__lte=at - LAST_SEEN_STEP) | ~Q(address=address)
    UserSession.objects.filter(stale, pk=session_id).update(last_seen_at=at, address=address)


def _user_agent(request: HttpRequest) -> str:
    """What the browser calls itself, as far as it can be shown."""
    given = request.headers.get("User-Agent", "")[:USER_AGENT_CHARS_MAX]
    return "".join(each for each in given if each.isprintable())
