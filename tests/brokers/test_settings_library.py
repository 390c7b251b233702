"""The library that settings are declared with: reading, rules, errors, writing, pages."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from brokers.errors import BrokerError
from brokers.locations import Location
from brokers.settings.errors import SettingsError
from brokers.settings.fields import REQUIRED, inlined, section_of, setting, settings_of
from brokers.settings.reading import Environment, load_settings_file, parse_toml, read_settings
from brokers.settings.reference import section_reference
from brokers.settings.values import Reading
from brokers.settings.writing import settings_toml, toml_value


@dataclass(frozen=True)
class Size:
    """Width and height."""

    width: int = setting(3, "Width.", minimum=1, maximum=9)
    height: int = setting(4, "Height.", maximum=9)


@dataclass(frozen=True)
class Plain:
    """Further ones."""

    place: Location = setting(REQUIRED, "A place.")
    note: str = setting("", "A note.")


@dataclass(frozen=True, kw_only=True)
class Round:
    """Of the kind `round`."""

    kind: str = setting("round", "Its kind.", choices=("round", "square"))
    radius: float = setting(1.0, "Radius.", above=0)


@dataclass(frozen=True, kw_only=True)
class Square:
    """Of the kind `square`."""

    kind: str = setting("square", "Its kind.", choices=("round", "square"))
    size: Size = setting(Size(), "Its size.")
    plain: Plain = inlined()


@dataclass(frozen=True, kw_only=True)
class Main:
    """What most have."""

    name: str = setting("{home}/x", "A name.")
    password: str = setting("", "A password.", secret=True)
    folder: Path = setting(Path("{home}/y"), "A folder.")
    files: tuple[Path, ...] = setting((), "Files.")
    ports: tuple[int, ...] = setting((1,), "Ports.")
    quick: bool = setting(False, "Whether.")
    unset: Path | None = setting(None, "May be unset.")
    labels: Mapping[str, str] = setting({}, "Labels.")


@dataclass(frozen=True, kw_only=True)
class File:
    """A settings file; `folder` is none of its settings."""

    folder: Path
    mode: str = setting("a", "The mode.", choices=("a", "b"))
    main: Main
    shape: Round | Square = section_of({"round": Round, "square": Square})


ENVIRONMENT = Environment("APP", {"APP_NAME": ("main", "name")})


def read(text="", reading=None, overrides=()):
    table = parse_toml(text, overrides)
    return read_settings(File, table, reading=reading or Reading(), folder=Path("/f"))


def test_what_is_not_given_has_its_default():
    settings = read()
    assert settings == File(folder=Path("/f"), main=Main(), shape=Round())
    assert settings.main.folder == Path("{home}/y")


def test_places_stand_in_what_is_given_and_in_defaults():
    reading = Reading({"home": "/h"})
    settings = read("[main]\nfiles = ['{home}/a', '/b']\nlabels = {a = '{home}'}\n", reading)
    assert (settings.main.name, settings.main.folder) == ("/h/x", Path("/h/y"))
    assert settings.main.files == (Path("/h/a"), Path("/b"))
    assert settings.main.labels == {"a": "/h"}


def test_paths_and_locations_are_made_absolute():
    settings = read("[main]\nfolder = 'a'\n[shape]\nkind = 'square'\nplace = 'b'\n")
    assert settings.main.folder == Path.cwd() / "a"
    assert isinstance(settings.shape, Square)
    assert settings.shape.plain.place == str(Path.cwd() / "b")
    assert read("[main]\nfolder = '~/a'\n").main.folder == Path.home() / "a"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1", "unknown setting x"),
        ("folder = 'x'", "unknown setting folder"),
        ("main = 1", "main is 1, want a section"),
        ("mode = 'c'", "mode is 'c', want one of a, b"),
        ("[main]\nx = 1", "unknown setting main.x"),
        ("[main]\nname = ''", "main.name is '', want a text that is not empty"),
        ("[main]\npassword = 5", "main.password is (hidden), want a text"),
        ("[main]\nfolder = ''", "main.folder is '', want a path"),
        ("[main]\nfiles = [1]", "main.files is [1], want a list of paths"),
        ("[main]\nports = []", "main.ports is [], want a list of whole numbers"),
        ("[main]\nports = [1, true]", "main.ports is [1, True], want a list of whole numbers"),
        ("[main]\nports = '1'", "main.ports is '1', want a list of whole numbers"),
        ("[main]\nquick = 'true'", "main.quick is 'true', want true or false"),
        ("[main]\nunset = 1", "main.unset is 1, want a path"),
        ("[main]\nlabels = {a = 1}", "main.labels is {'a': 1}, want a table of texts"),
        ("[shape]\nkind = 'star'", "shape.kind is 'star', want one of round, square"),
        ("[shape]\nkind = 1", "shape.kind is 1, want one of round, square"),
        ("[shape]\nradius = 0", "shape.radius is 0, want a number of more than 0"),
        ("[shape]\nradius = true", "shape.radius is True, want a number of more than 0"),
        ("[shape]\nkind = 'square'", "shape.place must be set"),
        (
            "[shape]\nkind = 'square'\nplace = 'ftp://x'",
            "shape.place is 'ftp://x', want a location: ftp://x: no such kind of store",
        ),
        ("[shape]\nkind = 'square'\nsize = {x = 1}", "unknown setting shape.size.x"),
        (
            "[shape]\nkind = 'square'\nsize = {width = 0}",
            "shape.size.width is 0, want a whole number from 1 to 9",
        ),
        (
            "[shape]\nkind = 'square'\nsize = {height = 10}",
            "shape.size.height is 10, want a whole number of at most 9",
        ),
    ],
)
def test_what_is_wrong_is_named_with_what_is_wanted(text, said):
    with pytest.raises(SettingsError) as raised:
        read(text)
    assert str(raised.value) == said


def test_numbers_and_lists_may_be_texts_where_that_is_asked_for():
    text = "[main]\nports = '1, 2'\nquick = 'true'\n[shape]\nradius = '0.5'\n"
    settings = read(text, Reading(as_text=True))
    assert (settings.main.ports, settings.main.quick) == ((1, 2), True)
    assert settings.shape == Round(radius=0.5)
    with pytest.raises(SettingsError, match=r"^main.quick is 'yes', want true or false$"):
        read("[main]\nquick = 'yes'\n", Reading(as_text=True))


def test_an_override_wins_over_the_file():
    settings = read("[main]\nports = [1]\n", overrides=["main.ports=[2]", "main.name = plain text"])
    assert (settings.main.ports, settings.main.name) == ((2,), "plain text")


def test_the_environment_wins_over_the_file():
    table = parse_toml("mode = 'a'\n[main]\nname = 'file'\npassword = 'file'\n")
    environ = {
        "APP_NAME": "short",
        "APP_MAIN_NAME": "long",
        "APP_MAIN_PASSWORD": "",
        "APP_MODE": "b",
    }
    over = ENVIRONMENT.over(table, File, environ)
    assert over == {"mode": "b", "main": {"name": "short", "password": ""}, "shape": {}}
    empty = ENVIRONMENT.over(table, File, {"APP_NAME": "", "APP_MODE": ""})
    assert empty == {**table, "shape": {}}
    assert ENVIRONMENT.source("main.name", environ) == "APP_NAME"
    assert ENVIRONMENT.source("mode", environ) == "APP_MODE"
    assert ENVIRONMENT.source("main.folder", environ) is None


def test_what_is_written_is_read():
    given = File(
        folder=Path("/f"),
        mode="a",
        main=Main(
            name='a "quoted" \\ name',
            folder=Path("/y"),
            files=(Path("/a"),),
            quick=True,
            labels={"kubernetes.io/os": "linux"},
        ),
        shape=Square(size=Size(width=5), plain=Plain(note="n", place="/p")),
    )
    text = settings_toml(given)
    assert read(text) == given
    # What is not set cannot be written.
    assert "unset" not in tomllib.loads(text)["main"]
    with pytest.raises(SettingsError, match="no setting takes a NoneType"):
        toml_value(None)


def test_an_error_of_a_file_names_it(tmp_path):
    path = tmp_path / "app.toml"
    with pytest.raises(SettingsError, match=r"app\.toml: .*No such file"):
        load_settings_file(path, read)
    path.write_bytes(b"\xff")
    with pytest.raises(SettingsError, match=r"app\.toml: 'utf-8' codec"):
        load_settings_file(path, read)
    path.write_text("x = 1")
    with pytest.raises(BrokerError, match=r"app\.toml: unknown setting x"):
        load_settings_file(path, read)


def test_a_page_shows_each_setting():
    assert section_reference("main", Main, ENVIRONMENT).splitlines()[:8] == [
        "",
        "## main",
        "",
        "What most have.",
        "",
        "| Setting | Environment | Default | Meaning |",
        "|---|---|---|---|",
        '| `main.name` | `APP_NAME` | `"{home}/x"` | A name. |',
    ]
    rows = section_reference("shape", Square).splitlines()[7:]
    assert rows == [
        '| `shape.kind` | `"square"` | Its kind. |',
        "| `shape.size` | `{ width = 3, height = 4 }` | Its size. |",
        "| `shape.place` |  | A place. |",
        '| `shape.note` | `""` | A note. |',
    ]
    assert list(settings_of(File)) == ["mode", "main", "shape"]
