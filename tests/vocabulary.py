"""The words of `docs/glossary.md`, as pure functions from a file's path and text to complaints.

`test_vocabulary.py` applies them to every file of the checkout, and to samples that break them.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

# A word that had several meanings or stood where the field has a term → what to write instead.
RETIRED = {
    "estate": "metrics source, export, earlier lanes, resources",
    "heir": "takeover, successor",
    "impatience": "timeout",
    "patience": "timeout, time limit, delay",
    "shelf": "hidden topics, deleted topics",
    "shelve": "hide",
    "shelved": "hidden",
    "spare": "recycled file; to keep",
    "spared": "kept",
    "spares": "recycled files; keeps",
    "standing": "liveness, account status, completeness, state",
    "standings": "states",
    "stranger": "unknown lane, unauthenticated client, another organization",
    "strangers": "unknown lanes, unauthenticated clients",
    "told": "reported, notified, logged, said, known",
    "trouble": "fault, failure",
    "troubled": "faulty",
    "troubles": "faults",
}

# Names that clients or stored data know, and keep: (path, name, reason). A path's `*` is any text.
PUBLIC = [
    ("*", "freshet_estate_unknown", "a metric"),
    ("*", "metering_hourstanding", "a table"),
    ("*", "organization.set_standing", "an action of the audit log"),
    ("*", "shelved_topic", "a key of the metadata store, and its sample"),
    ("*", "shelved_at_ms", "a member of a stored record"),
    ("*", ".spare", "the ending of a lane's recycled files"),
    ("brokers/core/crates/*", '"spare"', "that ending, without its dot"),
    ("brokers/*", '"spares"', "a member of what `inspect` prints"),
    ("tests/brokers/*", '"spares"', "that member"),
    ("console/base/accounts/*", '"standing"', "a member of an organization in REST; its column"),
    ("console/base/accounts/api/serializers.py", "standing = serializers", "that member"),
    ("tests/console/*", '"standing"', "that member"),
    ("*", "told_at_ms", "a member of a keeper's stored report"),
    ("console/staff/*", "told_at", "a member of a cell in REST"),
    ("frontend/src/*", "told_at", "that member"),
    ("tests/*", "told_at", "that member"),
    ("console/base/accounts/README.md", "`standing`", "a member of an organization in REST"),
    ("provisioning/deliverables/terraform/*", "standing", "that member, in the provider"),
    ("provisioning/deliverables/terraform/*", "Standing", "that member, in the provider"),
]

# Written by tools from what is checked elsewhere, data, or history.
UNCHECKED = re.compile(
    r"(^|/)(migrations/|CHANGELOG\.md$|package-lock\.json$|Cargo\.lock$|go\.sum$|openapi\.json$"
    r"|schema\.d\.ts$|vocabulary\.py$|test_vocabulary\.py$)|\.(json|svg|pem|patch|bin|tfvars)$"
)

WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")

# No participle or pronoun names a variable: it says what became of a thing, and not what it is.
PARTICIPLES = frozenset({"each", "found", "told", "wanted"})
# Fields of a class that are columns, members of REST, or stored: (file, name).
PUBLIC_FIELDS = {
    ("console/base/limits/api/serializers.py", "wanted"),
    ("console/base/limits/models/request.py", "wanted"),
    ("console/staff/api/serializers.py", "wanted"),
    ("provisioning/cell/notes.py", "wanted"),
}
CODE_SUFFIXES = {".rs", ".ts", ".tsx", ".go"}
NOT_CODE = re.compile(
    r"//[^\n]*|/\*.*?\*/|r#\".*?\"#|\"(?:\\.|[^\"\\\n])*\"|`[^`]*`|'(?:\\.|[^'\\\n])*'", re.DOTALL
)
_NAMES = "each|found|told|wanted"
BARE_PARTICIPLE = re.compile(rf"(?<![\w.])({_NAMES})\b(?!\s*[(!:]:?\s*\()")
# In TypeScript a page's text and an object's members stand among the code, so only what declares.
DECLARED_PARTICIPLE = re.compile(
    rf"\b(?:const|let|var)\s+[^=;]*?(?<![\w.])({_NAMES})\b(?=[^=;]*=)"
    rf"|\(\s*(?:\w+,\s*)*({_NAMES})\b[^()]*\)(?::[^=]*)?\s*=>|(?<![\w.])({_NAMES})\s*=>"
)

RUST_TYPE = re.compile(
    r"^\s*(?:pub(?:\([a-z: ]+\))? )?(?:struct|enum|trait|union) (\w+)", re.MULTILINE
)
# What a framework finds by its name.
FRAMEWORK_NAMES = frozenset({"Command", "Migration"})


def retired_words(path: PurePosixPath, text: str) -> Iterator[str]:
    """Retired words in names and in prose."""
    if UNCHECKED.search(str(path)):
        return
    names = [name for pattern, name, _ in PUBLIC if path.match(pattern) or _is_below(path, pattern)]
    for number, line in enumerate([str(path), *text.splitlines()]):
        rest = line
        for name in names:
            rest = rest.replace(name, "")
        for word in sorted({word.lower() for word in WORD.findall(rest)} & RETIRED.keys()):
            yield f"{path}:{number}: {word} is retired: write {RETIRED[word]}"


def _is_below(path: PurePosixPath, pattern: str) -> bool:
    return pattern.endswith("/*") and path.is_relative_to(pattern[:-2])


def participle_variables(path: PurePosixPath, text: str) -> Iterator[str]:
    """Variables and parameters that are called each, found, told or wanted."""
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                name = node.id
            elif isinstance(node, ast.arg):
                name = node.arg
            else:
                continue
            if name in PARTICIPLES and (str(path), name) not in PUBLIC_FIELDS:
                yield f"{path}:{node.lineno}: a variable is called {name}"
    elif path.suffix in CODE_SUFFIXES and not UNCHECKED.search(str(path)):
        pattern = DECLARED_PARTICIPLE if path.suffix in {".ts", ".tsx"} else BARE_PARTICIPLE
        code = NOT_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)
        for number, line in enumerate(code.splitlines(), start=1):
            for match in pattern.finditer(line):
                name = next(filter(None, match.groups()))
                yield f"{path}:{number}: a variable is called {name}"


def doubled_types(texts: Mapping[PurePosixPath, str]) -> dict[str, list[str]]:
    """`<crate or package>.<type>` → its files, of names that are defined more than once."""
    places: dict[str, list[str]] = defaultdict(list)
    for path, text in texts.items():
        for name in _types(path, text):
            places[name].append(str(path))
    return {name: sorted(files) for name, files in places.items() if len(files) > 1}


def _types(path: PurePosixPath, text: str) -> Iterable[str]:
    parts = path.parts
    if path.suffix == ".rs" and parts[:3] == ("brokers", "core", "crates") and parts[4] == "src":
        if path.stem.endswith("tests"):
            return ()
        return [f"{parts[3]}.{name}" for name in RUST_TYPE.findall(text)]
    if path.suffix == ".py" and len(parts) > 1 and parts[0] != "tests":
        classes = [node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)]
        return [f"{parts[0]}.{kind.name}" for kind in classes if kind.name not in FRAMEWORK_NAMES]
    return ()
