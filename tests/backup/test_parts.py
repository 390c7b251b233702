"""Parts of backup and restore that need no PostgreSQL."""

import json
import subprocess

import pytest

from console.programs.backup import metadata, programs
from console.programs.backup.errors import BackupError
from console.programs.backup.known import known_migrations, unknown_migrations
from console.programs.backup.manifest import (
    DatabaseFacts,
    Manifest,
    MetadataFacts,
    check_files,
    describe_file,
    read_manifest,
    write_manifest,
)
from console.programs.backup.metadata import SqliteMetadata, metadata_store
from console.programs.backup.secrets import copy_secrets, differing_secrets, put_secrets
from console.programs.supervisor.errors import StartError
from console.programs.supervisor.marker import clear_restoring, mark_restoring, refuse_half_restored
from console.settings.config import build_config
from console.settings.home import read_or_make_secret

from .topics import create_topics

STAMP = "20261122t030000z"


@pytest.fixture
def config(tmp_path):
    """A home with its two secrets."""
    config = build_config(tmp_path / "home", {}, {})
    config.home.mkdir()
    read_or_make_secret(config.secret_key_file)
    config.cell.secret.parent.mkdir(parents=True)
    config.cell.secret.write_text("ab" * 32)
    return config


@pytest.fixture
def folder(tmp_path):
    """The folder of a backup."""
    backup = tmp_path / "backup"
    backup.mkdir()
    return backup


def manifest_of(folder):
    dump, copy = folder / "postgresql.dump", folder / "metadata.sqlite"
    dump.write_bytes(b"a dump")
    copy.write_bytes(b"a copy")
    database = DatabaseFacts(
        describe_file(dump), 18, 18, 60, ("common.0001_initial",), ("v1/a.json",)
    )
    facts = MetadataFacts(describe_file(copy), "sqlite", 1, 7)
    return Manifest(
        "2026-11-22T03:00:00+00:00", "2026-11-22T03:00:01+00:00", "1", database, facts, ()
    )


def test_a_manifest_is_read_as_it_was_written(folder):
    written = manifest_of(folder)
    write_manifest(folder, written)
    assert read_manifest(folder) == written
    assert (folder / "manifest.json").stat().st_mode & 0o777 == 0o600
    check_files(folder, written.files())


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"format": 2}, "restore with the release that made it"),
        ({"database": {}}, "is damaged"),
        (
            {"metadata": {"copy": {"name": "../x", "size_bytes": 1, "sha256": ""}}},
            "not in its folder",
        ),
    ],
)
def test_a_manifest_that_makes_no_sense_is_refused(folder, change, complaint):
    write_manifest(folder, manifest_of(folder))
    file = folder / "manifest.json"
    content = json.loads(file.read_text())
    file.write_text(json.dumps(content | change))
    with pytest.raises(BackupError, match=complaint):
        read_manifest(folder)


def test_an_incomplete_or_damaged_backup_is_refused(folder):
    with pytest.raises(BackupError, match="is no backup"):
        read_manifest(folder)
    manifest = manifest_of(folder)
    (folder / "postgresql.dump").write_bytes(b"another dump")
    with pytest.raises(BackupError, match="is damaged"):
        check_files(folder, manifest.files())
    (folder / "postgresql.dump").unlink()
    with pytest.raises(BackupError, match="not complete"):
        check_files(folder, manifest.files())


def test_metadata_is_copied_and_put_back(tmp_path, folder):
    path = tmp_path / "metadata.sqlite"
    create_topics(path, "old")
    store = SqliteMetadata(path)
    facts = store.copy(folder)
    assert (facts.kind, facts.version) == ("sqlite", metadata.SQLITE_VERSION)
    create_topics(path, "young")
    store.check(facts)
    store.stage(folder, facts)
    assert create_topics(path) == {"old", "young"}
    kept = store.install_staged(STAMP)
    assert kept == tmp_path / f"metadata.sqlite.before-{STAMP}"
    assert kept is not None
    assert create_topics(kept) == {"old", "young"}
    assert path.stat().st_mode & 0o777 == 0o600
    assert create_topics(path) == {"old"}


def test_processes_that_have_the_metadata_open_are_found(tmp_path):
    path = tmp_path / "metadata.sqlite"
    create_topics(path, "old")
    store = SqliteMetadata(path)
    assert store.users() == []
    reader = ["sh", "-c", f"exec 3<'{path}'; echo open; read _"]
    with subprocess.Popen(reader, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"open\n"
        assert store.users() == [process.pid]
        process.communicate(b"\n")
    assert store.users() == []


def test_lost_metadata_is_put_back_in_its_place(tmp_path, folder):
    create_topics(tmp_path / "metadata.sqlite", "old")
    facts = SqliteMetadata(tmp_path / "metadata.sqlite").copy(folder)
    path = tmp_path / "elsewhere" / "metadata.sqlite"
    store = SqliteMetadata(path)
    assert store.users() == []
    store.stage(folder, facts)
    assert store.install_staged(STAMP) is None
    assert create_topics(path) == {"old"}


def test_metadata_of_another_kind_or_a_newer_release_is_refused(tmp_path, folder):
    store = SqliteMetadata(tmp_path / "metadata.sqlite")
    with pytest.raises(BackupError, match="There is no metadata store"):
        store.copy(folder)
    with pytest.raises(BackupError, match="sqlite://"):
        metadata_store("mysql://127.0.0.1:3306", tmp_path / "secret")
    facts = manifest_of(folder).metadata
    with pytest.raises(BackupError, match="of etcd"):
        store.check(MetadataFacts(facts.copy, "etcd", 1, 1))
    with pytest.raises(BackupError, match="tables of version 2"):
        store.check(MetadataFacts(facts.copy, "sqlite", 2, 1))
    with pytest.raises(BackupError, match="cannot be read"):
        store.stage(folder, facts)


def test_secrets_are_copied_compared_and_put_back(config, folder):
    key = config.secret_key_file.read_text()
    facts = copy_secrets(config, folder, with_files=True)
    assert {file.name for file in folder.iterdir()} == {"secret_key", "cell_secret"}
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}
    assert differing_secrets(config, facts) == []
    assert put_secrets(config, folder, facts, STAMP) == []
    config.secret_key_file.write_text("made by a later start")
    config.cell.secret.unlink()
    (kept,) = put_secrets(config, folder, facts, STAMP)
    assert kept.read_text() == "made by a later start"
    assert config.secret_key_file.read_text().strip() == key
    assert config.cell.secret.read_text().strip() == "ab" * 32


def test_secrets_that_are_left_out_must_be_there(config, folder):
    facts = copy_secrets(config, folder, with_files=False)
    assert list(folder.iterdir()) == []
    assert differing_secrets(config, facts) == []
    config.secret_key_file.write_text("another")
    assert differing_secrets(config, facts) == ["secret_key"]
    from_settings = build_config(config.home, {"secret_key": "of the settings"}, {})
    with_file = copy_secrets(config, folder, with_files=True)
    # The settings win over the file that would be put back.
    assert differing_secrets(from_settings, with_file) == ["secret_key"]


def test_every_migration_of_the_code_is_known():
    known = known_migrations()
    assert {"common.0001_initial", "accounts.0001_initial", "billing.0001_initial"} <= known
    assert {"sessions.0001_initial", "auth.0001_initial"} <= known
    assert unknown_migrations(["common.0001_initial", "billing.9999_later"]) == [
        "billing.9999_later"
    ]


def test_programs_are_found_or_named():
    program = programs.find_program("pg_dump", at_least=1)
    assert programs.find_program("pg_dump", at_least=program.major).major >= program.major
    with pytest.raises(BackupError, match="postgresql-client-999"):
        programs.find_program("pg_dump", at_least=999)


def test_a_password_is_on_no_command_line():
    environment = programs.environment_for(
        "host=db user=postgres password=secret sslmode=verify-full", {"PGHOST": "other", "A": "b"}
    )
    assert environment["PGPASSWORD"] == "secret"
    assert environment["PGHOST"] == "db"
    assert environment["A"] == "b"


def test_nothing_starts_on_a_half_restored_home(tmp_path):
    refuse_half_restored(tmp_path)
    mark_restoring(tmp_path, tmp_path / "backup")
    with pytest.raises(StartError, match=r"restore --from .*backup"):
        refuse_half_restored(tmp_path)
    clear_restoring(tmp_path)
    refuse_half_restored(tmp_path)
