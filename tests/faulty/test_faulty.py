"""A faulty folder is a good one, but for the faults that it is asked for."""

import errno
import os
import signal
import subprocess
import sys
import threading

import pytest

from tests.faulty import faults
from tests.faulty.faults import Faults
from tests.faulty.mount import FaultyFolder
from tests.supervisor.run import wait_until

# Far beyond what anything here takes.
LIMIT_S = 30


@pytest.fixture
def folder(tmp_path):
    with FaultyFolder(tmp_path / "mount", tmp_path / "behind") as mounted:
        yield mounted


def test_without_faults_it_is_the_folder_behind(folder):
    path = folder.path / "deep" / "file"
    path.parent.mkdir()
    content = os.urandom(3 << 20)
    path.write_bytes(content)
    assert (folder.behind / "deep" / "file").read_bytes() == content
    assert path.read_bytes() == content
    (folder.path / "linked").hardlink_to(path)
    path.rename(folder.path / "renamed")
    assert sorted(path.name for path in folder.path.iterdir()) == ["deep", "linked", "renamed"]
    with pytest.raises(FileExistsError):
        (folder.path / "renamed").open("x")
    (folder.path / "renamed").unlink()
    path.parent.rmdir()
    assert [path.name for path in folder.behind.iterdir()] == ["linked"]
    many = {f"name-{number:04}" for number in range(500)}
    for name in many:
        (folder.path / name).touch()
    assert {path.name for path in folder.path.iterdir()} == many | {"linked"}


def test_open_file_can_be_read_when_its_name_is_gone(folder):
    path = folder.path / "file"
    path.write_bytes(b"content")
    with path.open("rb") as opened:
        path.unlink()
        assert opened.read() == b"content"


def test_named_operations_fail_on_named_files_until_it_heals(folder):
    with (folder.path / "a.wal").open("wb") as wal, (folder.path / "other").open("wb") as other:
        folder.fail(Faults(errors={"fsync": "EIO", "write": "ENOSPC"}, names="*.wal"))
        with pytest.raises(OSError, match="Input/output error"):
            os.fsync(wal.fileno())
        with pytest.raises(OSError, match="No space left") as failed:
            os.write(wal.fileno(), b"bytes")
        assert failed.value.errno == errno.ENOSPC
        os.write(other.fileno(), b"bytes")
        os.fsync(other.fileno())
        folder.heal()
        assert os.write(wal.fileno(), b"bytes") == 5


def test_what_hangs_goes_on_once_it_heals_and_others_meanwhile(folder):
    path, ended = folder.path / "a.wal", threading.Event()

    def write():
        path.write_bytes(b"bytes")
        ended.set()

    folder.fail(Faults(hangs=["write"], names="*.wal"))
    writing = threading.Thread(target=write)
    writing.start()
    (folder.path / "other").write_bytes(b"others")
    assert not ended.wait(0.2)
    assert (folder.behind / "a.wal").read_bytes() == b""
    folder.heal()
    assert ended.wait(LIMIT_S)
    writing.join()
    assert (folder.behind / "a.wal").read_bytes() == b"bytes"


def test_who_hangs_can_be_killed(folder):
    folder.fail(Faults(hangs=["write"], names="*.wal"))
    command = [sys.executable, "-c", "import sys; open(sys.argv[1], 'wb', 0).write(b'bytes')"]
    hanging = subprocess.Popen([*command, str(folder.path / "a.wal")])
    wait_until((folder.behind / "a.wal").exists, "it has come to the write")
    with pytest.raises(subprocess.TimeoutExpired):
        hanging.wait(0.2)
    hanging.kill()
    assert hanging.wait(LIMIT_S) == -signal.SIGKILL
    assert (folder.behind / "a.wal").read_bytes() == b""


def test_named_operations_fail_in_named_folders_alone(folder):
    for name in ("one/lane", "other/lane"):
        (folder.path / name).mkdir(parents=True)
    folder.fail(Faults(errors={"create": "EIO"}, names="*.wal", folders="one/*"))
    with pytest.raises(OSError, match="Input/output error"):
        (folder.path / "one" / "lane" / "a.wal").touch()
    (folder.path / "one" / "lane" / "other").touch()
    (folder.path / "other" / "lane" / "a.wal").touch()


def test_lies_are_given(folder):
    for name in ("taken", "source"):
        (folder.path / name).write_bytes(name.encode())
    folder.fail(Faults(lies=[faults.LINK_OVER, faults.RENAME_COPIES, faults.OLD_CONTENT]))
    with (folder.path / "taken").open("rb", buffering=0) as opened:
        (folder.behind / "taken").write_bytes(b"later")
        assert opened.read() == b"taken"
    os.link(folder.path / "source", folder.path / "linked")
    (folder.path / "source").rename(folder.path / "copied")
    assert {"source", "linked", "copied"} < {path.name for path in folder.path.iterdir()}


def test_names_can_be_remembered_wrongly(folder):
    folder.fail(Faults(lies=[faults.REMEMBERS_NAMES]))
    assert not (folder.path / "file").exists()
    (folder.behind / "file").touch()
    assert not (folder.path / "file").exists()
