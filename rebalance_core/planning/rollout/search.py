"""The request for a rollout search, read from a TOML file, and the plans to choose from."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import inf
from pathlib import Path
from typing import Any

from rebalance_core.contracts.settings_file import named_text, toml_document
from rebalance_core.model.errors import UsageError, did_you_mean
from rebalance_core.model.times import read_duration
from rebalance_core.planning import table_keys
from rebalance_core.planning.expectations import EXPECT, Expectation, read_expectations
from rebalance_core.planning.scenario import deploys
from rebalance_core.planning.scenario.deploys import (
    Amount,
    Deploy,
    RollingRestart,
    SwitchStrategy,
    Turn,
)
from rebalance_core.planning.scenario.edit import read_moment
from rebalance_core.planning.scenario.member_edits import DOWN_MS
from rebalance_core.planning.scenario.scenario import Scenario
from rebalance_core.planning.table_keys import TableKey, ValueReader, read_values
from rebalance_core.planning.toml_lines import TomlLines

NAME = "rollout"
"""The name of every plan's scenario, so that random choices are the same under all plans."""
AT = "+10m"
"""When a deploy begins: by then the group has settled after any last recorded event."""


@dataclass(frozen=True, slots=True)
class RolloutPlan:
    """Numbers and pace of a deploy; keys as in `Deploy`, times in ms."""

    surge: Amount
    unavailable: Amount
    pause_ms: int = 0
    order: str = deploys.RANDOM
    down_ms: int = DOWN_MS
    ready_ms: int = 0
    graceful: bool = True
    address: str = deploys.NEW

    @property
    def plan_id(self) -> str:
        """The plan's name in tables."""
        text = (
            f"surge {self.surge}, unavailable {self.unavailable}, pause {duration(self.pause_ms)}"
        )
        return f"{text}, {self.order}{'' if self.graceful else ', killed'}"

    def edit(self, change: str, groups: str) -> Deploy:
        """Return the edit of a scenario that deploys groups in this way."""
        what, _, value = change.partition("=")
        values: dict[str, Any] = {
            "at": read_moment(AT), "group": (groups,), "surge": self.surge,
            "unavailable": self.unavailable, "pause": self.pause_ms, "order": self.order,
            "down": self.down_ms, "ready_after": self.ready_ms, "graceful": self.graceful,
            "address": self.address,
        }  # fmt: skip
        if what == SWITCH_STRATEGY:
            return SwitchStrategy(**values, strategy=value)
        return RollingRestart(**values, version=value if what == UPGRADE else None)

    def scenario(self, change: str, groups: str) -> Scenario:
        """Return the scenario that consists of this edit."""
        return Scenario(NAME, self.plan_id, (self.edit(change, groups),))

    def as_toml(self, change: str, groups: str) -> str:
        """Return the text of that scenario, for ``plan --scenario``."""
        what, _, value = change.partition("=")
        more = {
            SWITCH_STRATEGY: f"strategy = {quoted(value)}\n",
            UPGRADE: f"version = {quoted(value)}\n",
        }
        kind = SwitchStrategy.KIND if what == SWITCH_STRATEGY else RollingRestart.KIND
        return (
            f"name = {quoted(NAME)}\ndescription = {quoted(self.plan_id)}\n\n[[edit]]\n"
            f"kind = {quoted(kind)}\nat = {quoted(AT)}\ngroup = {quoted(groups)}\n"
            f"{more.get(what, '')}"
            f"surge = {quoted(self.surge)}\nunavailable = {quoted(self.unavailable)}\n"
            f"down = {quoted(duration(self.down_ms))}\n"
            f"ready_after = {quoted(duration(self.ready_ms))}\n"
            f"pause = {quoted(duration(self.pause_ms))}\norder = {quoted(self.order)}\n"
            f"graceful = {str(self.graceful).lower()}\naddress = {quoted(self.address)}\n"
        )

    def as_strategy(self) -> str:
        """Return the part of a Deployment's ``spec`` that deploys in this way; YAML."""
        seconds = -(-(self.ready_ms + self.pause_ms) // 1000)
        comments = [f"# Assumed: {assumption}." for assumption in ASSUMPTIONS]
        if self.pause_ms:
            comments.append(
                f"# minReadySeconds holds ready_after and the pause of {duration(self.pause_ms)}"
            )
            if self.surge not in deploys.NOTHING:
                comments.append(
                    "# so old pods stop after the pause; the simulation stops them before it"
                )
        if self.order != deploys.RANDOM:
            comments.append(f"# Kubernetes chooses which pods stop; the simulation: {self.order}")
        lines = [
            *comments, f"minReadySeconds: {seconds}", "strategy:", "  type: RollingUpdate",
            "  rollingUpdate:", f"    maxSurge: {self.surge}",
            f"    maxUnavailable: {self.unavailable}",
        ]  # fmt: skip
        return "\n".join(lines) + "\n"


ASSUMPTIONS = (
    "the pods of a step start at the same instant",
    "a pod is Ready once its consumer has joined the group",
)
"""Assumptions about Kubernetes that every future of a search makes."""


def duration(ms: int) -> str:
    """Return a duration as `read_duration` reads it.

    >>> duration(15_000), duration(2_100)
    ('15s', '2100ms')
    """
    return f"{ms}ms" if ms % 1000 else f"{ms // 1000}s"


def quoted(value: Amount) -> str:
    """Return a number, or a text quoted as in TOML."""
    if isinstance(value, int):
        return str(value)
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


RESTART, UPGRADE, SWITCH_STRATEGY = CHANGES = ("restart", "upgrade", "switch-strategy")
DEFAULT = "25%"
"""Surge and unavailable of a RollingUpdate in Kubernetes by default."""
MOST_PLANS = 2_000
AMOUNTS: tuple[Amount, ...] = (0, 1, "25%", "50%", "100%")


_from_0_up = table_keys.number_that(lambda value: 0 <= value < inf, "from 0 up")


def several(read: ValueReader) -> ValueReader:
    """Return a reader of one value or a list of values."""

    def each(value: Any) -> tuple[Any, ...]:
        if value == []:
            raise ValueError("expected a value or a list of values")
        return tuple(map(read, value if isinstance(value, list) else [value]))

    return each


def read_change(value: Any) -> str:
    """Read the change to deploy."""
    what, equals, text = table_keys.words(value).partition("=")
    if what == SWITCH_STRATEGY and text:
        return f"{what}={table_keys.strategy(text)}"
    if what == UPGRADE and text:
        return f"{what}={table_keys.version(text)}"
    if what == RESTART and not equals:
        return what
    hint = did_you_mean(what, CHANGES)
    raise ValueError(f'expected "restart", "upgrade=VERSION" or "switch-strategy=TEXT"{hint}')


@dataclass(frozen=True, slots=True)
class Budgets:
    """The most that a rollout may cost, all groups together; None: unlimited.

    99 % of the futures must keep the first four; ``min_members`` holds for each group.
    """

    max_read_again: float | None = None
    max_no_owner_s: float | None = None
    max_double_s: float | None = None
    finish_within: int | None = None
    min_members: int | None = None


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of a message read again, an unowned queue-second and an hour of an extra pod."""

    copy: float = table_keys.key(_from_0_up, 0.0)
    no_owner_s: float = table_keys.key(_from_0_up, 0.0)
    pod_hour: float = table_keys.key(_from_0_up, 0.0)


@dataclass(frozen=True)
class Search:
    """A search: the change to deploy, its budgets, and the paces to choose from.

    Every combination of ``surge``, ``unavailable``, ``pause`` and ``order`` is a plan.
    """

    change: str = table_keys.needed(read_change)
    groups: str = table_keys.needed(table_keys.words)
    budgets: Budgets = Budgets()
    prices: Prices | None = None
    surge: tuple[Amount, ...] = table_keys.key(several(deploys.amount), AMOUNTS)
    unavailable: tuple[Amount, ...] = table_keys.key(several(deploys.amount), AMOUNTS)
    pause: tuple[int, ...] = table_keys.key(several(read_duration), (0, 5_000, 15_000, 60_000))
    order: tuple[str, ...] = table_keys.key(
        several(table_keys.one_of(*deploys.ORDERS)), (deploys.RANDOM,)
    )
    down: int = table_keys.key(read_duration, DOWN_MS)
    ready_after: int = table_keys.key(read_duration, 0)
    graceful: bool = table_keys.key(table_keys.yes_or_no, True)
    address: str = table_keys.key(table_keys.one_of(*deploys.ADDRESSES), deploys.NEW)
    expectations: tuple[Expectation, ...] = ()

    def default(self) -> RolloutPlan:
        """Return the plan of a Deployment that does not specify a strategy."""
        return RolloutPlan(
            DEFAULT, DEFAULT, 0, self.order[0], self.down, self.ready_after, self.graceful,
            self.address,
        )  # fmt: skip

    def plans(self, members: Sequence[int]) -> tuple[RolloutPlan, ...]:
        """Return the plans that differ for groups of so many members; Kubernetes' default first.

        Raises:
            UsageError: There are more than `MOST_PLANS`.
        """
        first = self.default()
        combined = (
            replace(first, surge=surge, unavailable=unavailable, pause_ms=pause, order=order)
            for surge, unavailable, pause, order in product(
                self.surge, self.unavailable, self.pause, self.order
            )
            if surge not in deploys.NOTHING or unavailable not in deploys.NOTHING
        )
        plans: dict[Any, RolloutPlan] = {}
        for plan in (first, *combined):
            turns = tuple(self.turns(plan, number) for number in members)
            together = all(len(set(of_group)) == 1 for of_group in turns)
            plans.setdefault((turns, "" if together else plan.order), plan)
        if len(plans) > MOST_PLANS:
            raise UsageError(f"[plans] make {len(plans):,} plans; at most {MOST_PLANS:,} are valid")
        return tuple(plans.values())

    def turns(self, plan: RolloutPlan, members: int) -> tuple[Turn, ...]:
        """Return when each of `members` members is replaced."""
        return plan.edit(self.change, self.groups).turns(members)


_OF_SEARCH = table_keys.keys_of(Search)
_TOP = {name: key for name, key in _OF_SEARCH.items() if key.required}
_TABLES: Mapping[str, Mapping[str, TableKey]] = {
    "budgets": {
        "max_read_again": TableKey(_from_0_up),
        "max_no_owner_s": TableKey(_from_0_up),
        "max_double_s": TableKey(_from_0_up),
        "min_members": TableKey(table_keys.whole(0, 1_000_000)),
        "finish_within": TableKey(read_duration),
    },
    "prices": table_keys.keys_of(Prices),
    "plans": {name: key for name, key in _OF_SEARCH.items() if not key.required},
}


def read_search(path: str | Path) -> Search:
    """Return the search in a file; a bundled search by name.

    Raises:
        UsageError: The message has a line per mistake, with ``file:line`` and the nearest valid
            name.
    """
    return parse_search(named_text(Path(path), "rollouts"), str(path))


def parse_search(text: str, file: str) -> Search:
    """Return the search of a TOML text; errors as in `read_search`."""
    content = toml_document(text, file)
    reading = _Reading(file, TomlLines(text))
    tables = {name: content.pop(name, {}) for name in _TABLES}
    expected = read_expectations(content.pop(EXPECT, []), file, reading.lines, reading.mistakes)
    top = reading.values("", content, _TOP, [*_TOP, *_TABLES, EXPECT])
    values = {
        name: reading.values(name, table, _TABLES[name], _TABLES[name])
        for name, table in tables.items()
    }
    pace = values["plans"]
    chosen = [pace.get(name, getattr(Search, name)) for name in ("surge", "unavailable")]
    if all(value in deploys.NOTHING for amounts in chosen for value in amounts):
        reading.mistake(
            "surge",
            "plans",
            "surge and unavailable are both 0, so no member would ever be replaced",
        )
    if reading.mistakes:
        raise UsageError("\n".join(reading.mistakes))
    prices = Prices(**values["prices"]) if tables["prices"] else None
    budgets = Budgets(**values["budgets"])
    return Search(**top, budgets=budgets, prices=prices, **pace, expectations=expected)


@dataclass
class _Reading:
    """Values of a file, and the mistakes in them."""

    file: str
    lines: TomlLines
    mistakes: list[str] = field(default_factory=list)

    def mistake(self, key: str, table: str, text: str) -> None:
        self.mistakes.append(f"{self.file}:{self.lines.of_key(key, table)}: {text}")

    def values(
        self, table: str, content: Any, keys: Mapping[str, TableKey], valid_keys: Collection[str]
    ) -> dict[str, Any]:
        """Return the values read; mistakes are noted."""
        if not isinstance(content, dict):
            self.mistake(table, "", f"{table} must be a table that begins with [{table}]")
            return {}
        values, wrong = read_values(content, keys, valid_keys=valid_keys, valid="valid")
        for key, text in wrong:
            self.mistake(key, table, text)
        for key, declared in keys.items():
            if declared.required and key not in content:
                self.mistakes.append(f"{self.file}:1: {key} is missing")
        return values


def named_budgets(budgets: Budgets) -> Iterator[tuple[str, float]]:
    """Return the budgets that are set, by name."""
    for name in Budgets.__slots__:
        value = getattr(budgets, name)
        if value is not None:
            yield name, value
