"""What a scenario can change: one kind of edit a file.

May import: other modules of `planning.scenario`, `model`, `strategies`. Begin with `edit`, then
`add_consumers`.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rebalance_core.contracts.settings_file import named_text, toml_document
from rebalance_core.model.errors import UsageError, did_you_mean, unknown_keys
from rebalance_core.planning.scenario.cluster_edits import (
    LoseBroker,
    LoseMaster,
    LoseRoom,
    NewTopic,
    ScaleQueues,
    SwitchRequestMode,
)
from rebalance_core.planning.scenario.deploys import RollingRestart, SwitchStrategy
from rebalance_core.planning.scenario.edit import Edit, EditKey, words
from rebalance_core.planning.scenario.member_edits import (
    AddConsumers,
    MixedSubscriptions,
    RemoveConsumers,
)
from rebalance_core.planning.scenario.scenario import Scenario

EDIT_KINDS: dict[str, type[Edit]] = {
    edit.KIND: edit
    for edit in (
        AddConsumers,
        RemoveConsumers,
        RollingRestart,
        LoseBroker,
        LoseMaster,
        ScaleQueues,
        NewTopic,
        SwitchStrategy,
        SwitchRequestMode,
        LoseRoom,
        MixedSubscriptions,
    )
}

__all__ = ["EDIT_KINDS", "Edit"]


# On which line of a TOML text a key stands: tomllib reads values and forgets places.

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\[\]#]+?)\s*\]\]?\s*(?:#.*)?")
_KEY = re.compile(r"\s*([A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*')\s*(?:\.[^=]*)?=")
_STRINGS = re.compile(r'"""|\'\'\'|"(?:[^"\\]|\\.)*"|\'[^\']*\'|#.*|[\[\]{}]')


@dataclass(slots=True)
class TomlLines:
    """Lines of the keys of the top table and of each table of the arrays of tables.

    Understands what scenario files use: plain and quoted keys, headers, values over several lines.
    """

    text: str
    _keys: dict[tuple[str, int, str], int] = field(default_factory=dict)
    _tables: dict[tuple[str, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        table, index = "", 0
        counts: dict[str, int] = {}
        depth, quotes = 0, ""
        for line_number, line in enumerate(self.text.splitlines(), 1):
            if not depth and not quotes:
                header, key = _HEADER.fullmatch(line), _KEY.match(line)
                if header:
                    table = header[2].strip("\"'")
                    index = counts.get(table, 0)
                    counts[table] = index + 1
                    self._tables[table, index] = line_number
                    continue
                if key:
                    name = key[1].strip("\"'")
                    self._keys.setdefault((table, index, name), line_number)
                    line = line[key.end() :]
            depth, quotes = _open_at_end(line, depth, quotes)

    def of_table(self, table: str, index: int = 0) -> int:
        """The line of a table's header; 1 if it has none."""
        return self._tables.get((table, index), 1)

    def of_key(self, key: str, table: str = "", index: int = 0) -> int:
        """The line of a key; that of its table if the key is not found."""
        match = self._keys.get((table, index, key))
        return match if match is not None else self.of_table(table or key, index)


def _open_at_end(line: str, depth: int, quotes: str) -> tuple[int, str]:
    """How many brackets, and which multi-line quotes, are open behind the line."""
    place = 0
    if quotes:
        end = line.find(quotes)
        if end < 0:
            return depth, quotes
        place = end + len(quotes)
    for match in _STRINGS.finditer(line, place):
        if match.start() < place:
            continue
        token = match[0]
        if token in ('"""', "'''"):
            end = line.find(token, match.end())
            if end < 0:
                return depth, token
            place = end + len(token)
        elif token in "[{":
            depth += 1
        elif token in "]}":
            depth -= 1
    return depth, ""


# Scenario files: TOML with name, description and ``[[edit]]`` tables; every mistake is named.

TOP_KEYS = ("name", "description", "edit")


def read_scenarios(paths: Iterable[str | Path]) -> list[Scenario]:
    """The scenarios of files, in the order of the files; bundled ones by name.

    Raises:
        UsageError: names every mistake of every file, one a line, with ``file:line`` and the
            nearest valid name: files that are not readable or no TOML, keys and kinds that do not
            exist, values that are wrong, keys that are missing, names given twice.
    """
    mistakes: list[str] = []
    scenarios: list[Scenario] = []
    first: dict[str, str] = {}
    for path in paths:
        text = _text_of(Path(path), mistakes)
        if text is None:
            continue
        before = len(mistakes)
        scenario = parse_scenario(text, str(path), mistakes)
        if len(mistakes) > before:
            continue
        line = TomlLines(text).of_key("name")
        if scenario.name in first:
            mistakes.append(
                f"{path}:{line}: name = {scenario.name!r} is that of {first[scenario.name]} too"
            )
        first.setdefault(scenario.name, str(path))
        scenarios.append(scenario)
    if mistakes:
        raise UsageError("\n".join(mistakes))
    return scenarios


def parse_scenario(text: str, file: str, mistakes: list[str]) -> Scenario:
    """The scenario of a TOML text; what is wrong is added to ``mistakes``.

    What comes back is of use only if no mistake was added.
    """
    try:
        content = toml_document(text, file)
    except UsageError as error:
        mistakes.append(str(error))
        return Scenario("", "", ())
    lines = TomlLines(text)
    for key, unknown in unknown_keys(content, TOP_KEYS):
        mistakes.append(f"{file}:{lines.of_key(key)}: {unknown}")
    for key in ("name", "description"):
        mistakes += _top_mistakes(content, key, file, lines)
    tables = content.get("edit", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        line = lines.of_key("edit")
        mistakes.append(f"{file}:{line}: edit must be tables that begin with [[edit]]")
        tables = []
    edits, places = [], []
    for index, table in enumerate(tables):
        edit = _edit(table, index, file, lines, mistakes)
        if edit is not None:
            edits.append(edit)
            places.append(f"{file}:{lines.of_table('edit', index)}")
    name, description = str(content.get("name", "")), str(content.get("description", ""))
    return Scenario(name, description.strip(), tuple(edits), tuple(places))


def _text_of(path: Path, mistakes: list[str]) -> str | None:
    try:
        return named_text(path, "scenarios")
    except UsageError as error:
        mistakes.append(str(error))
        return None


def _top_mistakes(
    content: Mapping[str, Any], key: str, file: str, lines: TomlLines
) -> Iterator[str]:
    if key not in content:
        yield f"{file}:1: {key} is missing"
        return
    try:
        words(content[key])
    except ValueError as error:
        yield f"{file}:{lines.of_key(key)}: {key} = {content[key]!r}: {error}"


def _edit(
    table: Mapping[str, Any], index: int, file: str, lines: TomlLines, mistakes: list[str]
) -> Edit | None:
    """The edit of one table; None if it has mistakes."""
    kind = table.get("kind")
    if not isinstance(kind, str) or kind not in EDIT_KINDS:
        listed = ", ".join(EDIT_KINDS)
        if kind is None:
            line = lines.of_table("edit", index)
            mistakes.append(f"{file}:{line}: kind is missing (kinds: {listed})")
        else:
            line = lines.of_key("kind", "edit", index)
            hint = did_you_mean(str(kind), EDIT_KINDS)
            mistakes.append(f"{file}:{line}: unknown kind {kind!r}{hint} (kinds: {listed})")
        return None
    given = {key: value for key, value in table.items() if key != "kind"}
    edit = EDIT_KINDS[kind]
    values, wrong = read_values(given, edit.keys(), f" of {kind}")
    for key, declared in edit.keys().items():
        if declared.required and key not in table:
            wrong.append(("kind", f"{kind} needs {key}"))
    for key, message in edit.contradictions(table):
        wrong.append((key, f"{kind if key == 'kind' else key} {message}"))
    mistakes += [f"{file}:{lines.of_key(key, 'edit', index)}: {text}" for key, text in wrong]
    return None if wrong else edit(**values)


def read_values(
    given: Mapping[str, Any],
    keys: Mapping[str, EditKey],
    whose: str = "",
    known: Collection[str] | None = None,
    valid: str = "valid keys",
) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Return the values of a table as its keys read them, and (key, what is wrong) of the others.

    Args:
        given: the table.
        keys: those of its kind.
        whose: where an unknown key was looked for, in words.
        known: all keys that may stand there, also those that are tables; None: ``keys``.
        valid: what the message calls them.
    """
    known = keys if known is None else known
    values = dict[str, Any]()
    unknown = (key for key in given if key not in keys)
    wrong = list(unknown_keys(unknown, known, whose=whose, valid=valid))
    for key, value in given.items():
        if key not in keys:
            continue
        try:
            values[key] = keys[key].read(value)
        except ValueError as error:
            wrong.append((key, f"{key} = {value!r}: {error}"))
    return values, wrong
