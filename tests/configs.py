"""Which of Kafka's configs have a reader, by the sources of the engine's crates.

The tables of `configs` say of each config whether it acts. It does where the value that
`TopicConfig` or `BrokerConfig` resolves from it is read by another crate, or where a setting of the
broker that bears its name for clients (`kafka_names`) is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from tests.crates import crate_of, is_for_tests, source_of

CRATES = PurePosixPath("brokers/core/crates")
TOPIC_TABLE = CRATES / "configs/src/topic_table.rs"
BROKER_TABLE = CRATES / "configs/src/broker_table.rs"
TOPIC = CRATES / "configs/src/topic.rs"
BROKER = CRATES / "configs/src/broker.rs"
SETTINGS = CRATES / "process/src/settings/convert.rs"
SETTINGS_CHECK = CRATES / "process/src/settings/check.rs"

OF_TOPIC = re.compile(
    r'name: "([\w.]+)",\s*config_type: .*?effect: Effect::(\w+).*?'
    r"broker_names: (&\[.*?\]),\n    \}",
    re.DOTALL,
)
BROKER_NAMES = re.compile(r'(?:same\(|name: )"([\w.]+)"')
OF_BROKER = re.compile(r'(?:fixed|unset)\(\s*"([\w.]+)",[^;]*?\b(Acts|Reported),')
CONFIG_NAME = re.compile(r'"([a-z]+(?:\.[a-z]+)+)"')
VARIABLE = re.compile(r"\blet (\w+) = ")
FUNCTION = re.compile(r"^(?:pub(?:\(\w+\))? )?fn (\w+)[^{]*\{", re.MULTILINE)
WORD = re.compile(r"\b[a-z_]\w*\b")
CALLED = re.compile(r"(?<![\w.])(\w+)\(")
SETTING = re.compile(r'\(\s*"(\w+)\.(\w+)",\s*"([\w.]+)",')
# What has the type of a config where one of its fields is read.
RECEIVER = r"(?:\bconfigs?|\bbroker|\bcurrent\(\)|\bconfig\(\)|\btopic_config\(\w+\)|\bawait\?)"
READS_CONFIGS = re.compile(
    r"\bTopicConfig\b|\bBrokerConfig\b|\.config\(\)|\bcurrent\(\)|\b\w+_config\("
)

Texts = dict[PurePosixPath, str]


def acting(texts: Texts) -> dict[str, bool]:
    """Config → whether its table says that it acts; those of brokers and of topics together."""
    effects = dict(OF_BROKER.findall(texts[BROKER_TABLE]))
    for name, effect, broker_names in OF_TOPIC.findall(texts[TOPIC_TABLE]):
        effects[name] = effect
        effects |= dict.fromkeys(BROKER_NAMES.findall(broker_names)[:1], effect)
    return {name: effect == "Acts" for name, effect in effects.items()}


def readers(texts: Texts) -> dict[str, set[str]]:
    """Config → the fields and settings that are resolved from it and that somebody reads."""
    sources = {
        path: source_of(text)
        for path, text in texts.items()
        if crate_of(path) and not is_for_tests(path)
    }
    read: dict[str, set[str]] = {}
    for field, names in [*fields_of(sources[TOPIC]), *fields_of(sources[BROKER])]:
        if is_read(field, sources):
            for name in names:
                read.setdefault(name, set()).add(field)
    for setting, name in settings_in_use(sources):
        read.setdefault(name, set()).add(setting)
    # The names by which brokers have the default of a topic config.
    for name, _, broker_names in OF_TOPIC.findall(texts[TOPIC_TABLE]):
        for broker_name in BROKER_NAMES.findall(broker_names):
            read.setdefault(broker_name, set()).update(read.get(name, ()))
    return {name: fields for name, fields in read.items() if fields}


def unread_fields(texts: Texts) -> list[str]:
    """Fields of the two configs that no other crate reads."""
    sources = {path: source_of(text) for path, text in texts.items() if crate_of(path)}
    sources = {path: text for path, text in sources.items() if not is_for_tests(path)}
    fields = [*fields_of(sources[TOPIC]), *fields_of(sources[BROKER])]
    return [field for field, names in fields if names and not is_read(field, sources)]


def fields_of(source: str) -> Iterator[tuple[str, set[str]]]:
    """Each field that `resolve` fills, as `cleanup.delete`, with the configs that its value is
    made from: those that are named there, or in a variable or function that it uses."""
    resolve = body_after(source, source.index("fn resolve("))
    variables = dict(assigned(VARIABLE, resolve, ";"))
    functions = dict(assigned(FUNCTION, source, "}"))

    def named(text: str, seen: frozenset[str] = frozenset()) -> set[str]:
        used = set(WORD.findall(text)) & variables.keys() - seen
        called = [functions[name] for name in set(CALLED.findall(text)) & functions.keys()]
        names = set(CONFIG_NAME.findall("\n".join([text, *called])))
        return names.union(*(named(variables[name], seen | used) for name in used))

    filled = body_after(resolve, resolve.rindex("Self {"))
    for field, value in initializers(filled):
        yield field, named(value)


def assigned(pattern: re.Pattern[str], source: str, end: str) -> Iterator[tuple[str, str]]:
    """What `pattern` names, each with the text behind it up to `end`."""
    for match in pattern.finditer(source):
        yield match.group(1), up_to(source, match.end(), end)


def initializers(text: str, prefix: str = "") -> Iterator[tuple[str, str]]:
    """The fields of a struct expression's inside, those of nested ones with the outer's name."""
    start = 0
    while match := re.compile(r"\s*(\w+): ").match(text, start):
        value = up_to(text, match.end(), ",")
        nested = re.match(r"\w+ \{", value)
        if nested:
            yield from initializers(value[nested.end() : -1], f"{prefix}{match.group(1)}.")
        else:
            yield prefix + match.group(1), value
        start = match.end() + len(value) + 1


def body_after(text: str, start: int) -> str:
    """The inside of the first braces behind `start`."""
    opened = text.index("{", start)
    return up_to(text, opened + 1, "}")


def up_to(text: str, start: int, end: str) -> str:
    """The text from `start` to the first `end` that is in no brackets opened behind `start`."""
    depth = 0
    for at in range(start, len(text)):
        if depth == 0 and text[at] == end:
            return text[start:at]
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if depth < 0:
            return text[start:at]
    return text[start:]


def is_read(field: str, sources: Texts) -> bool:
    """Whether a crate other than `configs` reads a field of a config."""
    path = r"\s*\.\s*".join(map(re.escape, field.split(".")))
    reads = re.compile(rf"{RECEIVER}\s*\.\s*{path}\b(?!\()")
    others = (text for path, text in sources.items() if crate_of(path) != "configs")
    return any(READS_CONFIGS.search(text) and reads.search(text) for text in others)


def settings_in_use(sources: Texts) -> Iterator[tuple[str, str]]:
    """Each setting that clients see under a name of Kafka's and that becomes a value which another
    crate reads, with that name."""
    convert = sources[SETTINGS]
    kafka_names = body_after(convert, convert.index("fn kafka_names("))
    process = {path: text for path, text in sources.items() if crate_of(path) == "process"}
    del process[SETTINGS_CHECK]
    text = "\n".join(process.values()).replace(kafka_names, "")
    others = "\n".join(text for path, text in sources.items() if crate_of(path) != "process")
    for section, key, name in SETTING.findall(kafka_names):
        becomes = re.findall(rf"(\w+): [^;,{{}}]*?\b(?:{section}|section)\.{key}\b", text)
        if any(re.search(rf"\.{field}\b", others) for field in becomes):
            yield f"{section}.{key}", name
