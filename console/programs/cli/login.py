"""Commands to sign up, in and out, and the profiles that these keep."""

from __future__ import annotations

import socket
import sys
from dataclasses import replace
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import urlsplit

import click

from console.programs.cli import names, options, output
from console.programs.cli.client import ApiAnswer, Client, segment
from console.programs.cli.config import DEFAULT_PROFILE, Profile
from console.programs.cli.errors import NOT_ALLOWED, NOT_FOUND, CommandError, Refused
from console.programs.cli.session import LOOPBACK, Session, pass_session

PASSWORD = "Password"  # noqa: S105 - a prompt


def _url_option() -> click.Option:
    return click.Option(
        ["--url", "-u"], help="Freshet's address. Default: FRESHET_URL, or it asks."
    )


def _prompt_for(session: Session, what: str, *, hidden: bool = False, default: str = "") -> str:
    """Asks a person at a terminal, or reads a line of the standard input.

    Raises `CommandError` where the answer is empty.
    """
    stdin = sys.stdin
    if stdin.isatty():
        given = click.prompt(what, hide_input=hidden, default=default or None, err=True)
    else:
        given = stdin.readline().rstrip("\r\n") or default
    if not given:
        raise CommandError(
            f"{what}: nothing was given.",
            advice="Type it at a terminal, or pass it on the standard input.",
        )
    return str(given)


def _choose_address(session: Session, url: str | None) -> str:
    given = session.environment.get("FRESHET_URL") or session.environment.get("FRESHET_ENDPOINT")
    known = session.config.profiles.get(session.current)
    default = known.url if known else Profile().url
    address = url or given
    if not address:
        stdin = sys.stdin
        address = _prompt_for(session, "Address", default=default) if stdin.isatty() else default
    parts = urlsplit(address)
    if parts.scheme == "http" and parts.hostname not in LOOPBACK:
        output.print_note(
            "Anybody on the network can read the key: the address does not begin with https."
        )
    return address.rstrip("/")


def _keep_profile(session: Session, name: str, profile: Profile) -> None:
    changed = replace(session.config.with_profile(name, profile), current=name)
    session.keep_config(changed)


@pass_session
def login(session: Session, url: str | None, email: str | None, organization: str | None) -> None:
    """Sign in, and keep an API key in a profile (`--profile`).

    It asks for an API key, which is made in the console; a script passes it on the standard input.
    With --email it asks for the password instead (and for a code, where there is a second factor)
    and makes a key with your role, which `freshet logout` revokes.
    """
    address = _choose_address(session, url)
    if email:
        secret, key_id = _make_key(session, address, email, organization)
    else:
        secret, key_id = _prompt_for(session, "API key", hidden=True).strip(), ""
    current = session.client_of(address, secret).get("/organizations/current")
    name = session.profile_name or session.environment.get("FRESHET_PROFILE") or DEFAULT_PROFILE
    _keep_profile(session, name, Profile(url=address, api_key=secret, key_id=key_id))
    if session.as_json:
        session.print_json(current)
    else:
        output.print_line(
            f"Signed in to {output.escape_controls(current['name'])} at {address} (profile {name})."
        )


def _make_key(
    session: Session, address: str, email: str, organization: str | None
) -> tuple[str, str]:
    """Signs a person in, makes an API key, signs out; returns the key's secret and id."""
    client = session.client_of(address)
    client.headers["Referer"] = f"{address}/"
    password = _prompt_for(session, PASSWORD, hidden=True)
    signed_in = _sign_in(session, client, email, password)
    try:
        chosen = _choose_organization(
            signed_in["organizations"], signed_in["organization"], organization
        )
        if chosen["id"] != signed_in["organization"]["id"]:
            body = {"organization_id": chosen["id"]}
            _with_cookies(client, client.call("PATCH", "/session", body=body))
        key = {"name": f"freshet on {socket.gethostname()}"[:100], "role": chosen["role"]}
        made = client.call("POST", "/api-keys", body=key).json()
    finally:
        client.call("DELETE", "/session")
    return made["secret"], made["id"]


def _sign_in(session: Session, client: Client, email: str, password: str) -> dict[str, Any]:
    _with_cookies(client, client.call("GET", "/session"))
    body = {"email": email, "password": password}
    try:
        answer = client.call("POST", "/session", body=body, repeat=False)
    except Refused as refused:
        if refused.problem_code != "code_required":
            raise
        code = _prompt_for(session, "Code of the authenticator app")
        answer = client.call("POST", "/session", body={**body, "code": code}, repeat=False)
    return _with_cookies(client, answer)


def _with_cookies(client: Client, answer: ApiAnswer) -> dict[str, Any]:
    """Keeps the cookies and the CSRF token of an answer for further requests; returns its body."""
    jar: SimpleCookie = SimpleCookie(client.headers.get("Cookie", ""))
    for line in answer.headers.get("set-cookie", "").splitlines():
        jar.load(line)
    client.headers["Cookie"] = "; ".join(
        f"{cookie.key}={cookie.coded_value}" for cookie in jar.values()
    )
    shown: dict[str, Any] = answer.json()
    client.headers["X-CSRFToken"] = shown["csrf_token"]
    return shown


def _choose_organization(
    belongs_to: list[dict[str, Any]], current: dict[str, Any] | None, requested: str | None
) -> dict[str, Any]:
    """Returns the organization whose key is made: the requested one, or the only one.

    `requested`: its id or name. Raises `CommandError` where it must be named, or is not the
    person's.
    """
    if requested is None and len(belongs_to) > 1:
        listed = ", ".join(candidate["name"] for candidate in belongs_to)
        raise CommandError(
            "You belong to several organizations.",
            advice=f"Add --organization with one of: {listed}",
        )
    if requested is None and current is not None:
        return current
    for candidate in belongs_to:
        if requested in {candidate["id"], candidate["name"]}:
            return candidate
    raise CommandError("You do not belong to that organization.", code=NOT_ALLOWED)


@pass_session
def signup(session: Session, url: str | None, email: str, organization: str) -> None:
    """Make an account and an organization, and keep its first API key in a profile.

    It asks for a password; a script passes it on the standard input.
    """
    address = _choose_address(session, url)
    body = {
        "email": email,
        "password": _prompt_for(session, PASSWORD, hidden=True),
        "organization_name": organization,
    }
    client = session.client_of(address)
    made = client.call("POST", "/signup", body=body, repeat=False).json()
    key = made["api_key"]
    name = session.profile_name or session.environment.get("FRESHET_PROFILE") or DEFAULT_PROFILE
    _keep_profile(session, name, Profile(url=address, api_key=key["secret"], key_id=key["id"]))
    if session.as_json:
        session.print_json({"organization": made["organization"]})
    else:
        output.print_line(
            f"Welcome. The key of {output.escape_controls(organization)} is in profile {name}."
        )
        if not made["organization"]["verified"]:
            output.print_line(
                "Follow the link in the mail that was sent to you, to confirm your address."
            )


@pass_session
def logout(session: Session) -> None:
    """Forget a profile's API key; one that `login` or `signup` made is revoked as well."""
    name = session.current
    profile = session.config.profiles.get(name)
    if profile is None:
        raise CommandError(f"There is no profile {name!r}.", code=NOT_FOUND)
    if profile.key_id:
        client = session.client_of(profile.url, profile.api_key)
        try:
            client.call("DELETE", f"/api-keys/{segment(profile.key_id)}")
        except CommandError as error:
            output.print_note(f"The key was not revoked: {error.message}")
    session.keep_config(session.config.without(name))
    session.note(f"Profile {name} is forgotten.")


@pass_session
def choose_default(session: Session, cluster: str | None, switch_to: str | None) -> None:
    """Choose the cluster that commands mean when they name none, or the profile in use."""
    if switch_to is not None:
        if switch_to not in session.config.profiles:
            raise CommandError(f"There is no profile {switch_to!r}.", code=NOT_FOUND)
        session.keep_config(replace(session.config, current=switch_to))
        session.note(f"Profile {switch_to} is in use.")
        return
    if cluster is None:
        raise CommandError(
            "What shall be used?", advice="Name a cluster, or a profile with --switch-to."
        )
    known = session.config.profiles.get(session.current)
    if known is None:
        raise CommandError(
            "There is no profile to keep it in.", advice="Sign in first with `freshet login`."
        )
    cluster_id = names.resolve_id(session, names.CLUSTERS, cluster)
    changed = session.config.with_profile(session.current, replace(known, cluster=cluster_id))
    session.keep_config(changed)
    session.note(f"Commands that name no cluster mean {output.escape_controls(cluster)} now.")


@pass_session
def show_profile(session: Session) -> None:
    """Show what is in use: address, cluster, the beginning of the key, the file of profiles."""
    key = session.key
    shown = {
        "profile": session.current,
        "url": session.url,
        "cluster": session.environment.get("FRESHET_CLUSTER") or session.profile.cluster,
        "api_key": f"{key[:7]}…" if key else "",
        "config": str(session.config_file),
    }
    if session.as_json:
        session.print_json(shown)
    else:
        session.print_lines(output.detail_lines(shown))


@pass_session
def list_profiles(session: Session) -> None:
    """List all profiles."""
    rows = [
        {
            "name": name,
            "url": profile.url,
            "cluster": profile.cluster,
            "current": name == session.current,
        }
        for name, profile in session.config.profiles.items()
    ]
    if session.as_json:
        session.print_json({"items": rows})
    elif rows:
        session.print_lines(output.table_lines(rows, "name url cluster current"))
    else:
        session.note("There are none. `freshet login` makes one.")


def _build_command(name: str, callback: Any, *parameters: click.Parameter) -> click.Command:
    return click.Command(
        name,
        callback=callback,
        params=[*parameters, *options.common_options()],
        help=callback.__doc__,
    )


def login_commands() -> list[click.Command]:
    """Returns the commands of this module."""
    email = click.Option(["--email", "-e"], help="Sign in as this person and make a key.")
    organization = click.Option(["--organization"], help="With --email: whose key is made.")
    profiles = click.Group("profile", help="Profiles, which `freshet login` keeps.")
    profiles.add_command(_build_command("show", show_profile))
    profiles.add_command(_build_command("list", list_profiles))
    return [
        _build_command("login", login, _url_option(), email, organization),
        _build_command(
            "signup",
            signup,
            _url_option(),
            click.Option(["--email", "-e"], required=True, help="Your address."),
            click.Option(["--organization"], required=True, help="The organization's name."),
        ),
        _build_command("logout", logout),
        _build_command(
            "use",
            choose_default,
            click.Argument(
                ["cluster"],
                required=False,
                metavar="CLUSTER",
                shell_complete=names.completion_of(names.CLUSTERS),
            ),
            click.Option(["--switch-to"], metavar="PROFILE", help="Use this profile from now on."),
        ),
        profiles,
    ]
