"""Scenario files: reading them, and the kinds of edits.

May import: other modules of `planning.scenario`, `model`, `strategies`. Begin with `edit`, then
`add_consumers`.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from rebalance_core.contracts.settings_file import named_text, toml_document
from rebalance_core.model.errors import UsageError, did_you_mean, unknown_keys
from rebalance_core.planning.expectations import EXPECT, read_expectations
from rebalance_core.planning.scenario.cluster_edits import (
    AddBroker,
    DrainBroker,
    LoseBroker,
    LoseMaster,
    LoseRoom,
    NewTopic,
    ScaleQueues,
    SwitchRequestMode,
)
from rebalance_core.planning.scenario.deploys import RollingRestart, SwitchStrategy
from rebalance_core.planning.scenario.edit import Edit
from rebalance_core.planning.scenario.member_edits import (
    AddConsumers,
    MixedSubscriptions,
    RemoveConsumers,
)
from rebalance_core.planning.scenario.proxy_edits import RestartProxies
from rebalance_core.planning.scenario.scenario import Scenario
from rebalance_core.planning.table_keys import read_values, words
from rebalance_core.planning.toml_lines import TomlLines

EDIT_KINDS: dict[str, type[Edit]] = {
    edit.KIND: edit
    for edit in (
        AddConsumers,
        RemoveConsumers,
        RollingRestart,
        LoseBroker,
        LoseMaster,
        RestartProxies,
        AddBroker,
        DrainBroker,
        ScaleQueues,
        NewTopic,
        SwitchStrategy,
        SwitchRequestMode,
        LoseRoom,
        MixedSubscriptions,
    )
}

__all__ = ["EDIT_KINDS", "Edit"]


TOP_KEYS = ("name", "description", "edit", EXPECT)


def read_scenarios(paths: Iterable[str | Path]) -> list[Scenario]:
    """Return the scenarios in files, in the order of the files; bundled scenarios are given by
    name.

    Raises:
        UsageError: The message has one line for every mistake in every file, with ``file:line`` and
            the nearest valid name: unreadable files or invalid TOML, unknown keys and kinds,
            invalid
            values, missing keys, repeated names.
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
                f"{path}:{line}: name = {scenario.name!r} is already used in {first[scenario.name]}"
            )
        first.setdefault(scenario.name, str(path))
        scenarios.append(scenario)
    if mistakes:
        raise UsageError("\n".join(mistakes))
    return scenarios


def parse_scenario(text: str, file: str, mistakes: list[str]) -> Scenario:
    """Return the scenario in a TOML text; mistakes are added to ``mistakes``.

    The result is valid only if no mistake was added.
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
    losing = [n for n, table in enumerate(tables) if "each" in table]
    mistakes += [
        f"{file}:{lines.of_key('each', 'edit', n)}: another edit already has each"
        for n in losing[1:]
    ]
    expectations = read_expectations(content.get(EXPECT, []), file, lines, mistakes)
    name, description = str(content.get("name", "")), str(content.get("description", ""))
    return Scenario(name, description.strip(), tuple(edits), tuple(places), expectations)


def _text_of(path: Path, mistakes: list[str]) -> str | None:
    try:
        return named_text(path, "scenarios")
    except UsageError as error:
        mistakes.append(str(error))
        return None


def _top_mistakes(
    content: Mapping[str, object], key: str, file: str, lines: TomlLines
) -> Iterator[str]:
    if key not in content:
        yield f"{file}:1: {key} is missing"
        return
    try:
        words(content[key])
    except ValueError as error:
        yield f"{file}:{lines.of_key(key)}: {key} = {content[key]!r}: {error}"


def _edit(
    table: Mapping[str, object], index: int, file: str, lines: TomlLines, mistakes: list[str]
) -> Edit | None:
    """Return the edit in a table, or None if it has mistakes."""
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
    settings = {key: value for key, value in table.items() if key != "kind"}
    edit = EDIT_KINDS[kind]
    values, wrong = read_values(settings, edit.keys(), f" of {kind}")
    for key, declared in edit.keys().items():
        if declared.required and key not in table:
            wrong.append(("kind", f"{kind} needs {key}"))
    for key, message in edit.contradictions(table):
        wrong.append((key, f"{kind if key == 'kind' else key} {message}"))
    mistakes += [f"{file}:{lines.of_key(key, 'edit', index)}: {text}" for key, text in wrong]
    return None if wrong else edit(**values)
