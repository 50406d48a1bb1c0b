"""The request for a rollout search, read from a TOML file, and the plans to choose from."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import inf
from pathlib import Path
from typing import Any

from rebalance_core.contracts.settings_file import named_text, toml_document
from rebalance_core.model.errors import UsageError, did_you_mean
from rebalance_core.model.times import SECOND_MS, read_duration
from rebalance_core.planning import table_keys
from rebalance_core.planning.expectations import EXPECT, Expectation, read_expectations
from rebalance_core.planning.scenario import deploys, pods
from rebalance_core.planning.scenario.deploys import Deploy, RollingRestart, SwitchStrategy
from rebalance_core.planning.scenario.edit import read_moment
from rebalance_core.planning.scenario.member_edits import DOWN_MS
from rebalance_core.planning.scenario.pods import Amount, Ready, Start, Stop, Turn
from rebalance_core.planning.scenario.scenario import Scenario
from rebalance_core.planning.table_keys import TableKey, ValueReader, read_values
from rebalance_core.planning.toml_lines import TomlLines
from rebalance_core.synthetic.draws import Draws

NAME = "rollout"
"""The scenario name shared by all plans, so that random choices are the same under each."""
AT = "+10m"
"""When a deploy begins: late enough for the group to have settled after the last recorded event."""


@dataclass(frozen=True, slots=True)
class RolloutPlan:
    """The numbers and pace of a deploy; keys are as in `Deploy`, times in ms.

    ``down_ms`` is the median start time of pods; the default spread is that of
    `pods.DEFAULT_SIGMA`.
    """

    surge: Amount
    unavailable: Amount
    pause_ms: int = 0
    order: str = deploys.RANDOM
    down_ms: int = DOWN_MS
    ready: Ready = 0
    graceful: bool = True
    address: str = deploys.NEW
    spread_ms: int | None = None
    min_ready_ms: int = 0
    pre_stop_ms: int = 0
    grace_ms: int = pods.GRACE_MS
    workload: str = deploys.DEPLOYMENT
    suspend_ms: int = 0

    @property
    def start(self) -> Start:
        """How long pods start."""
        return Start(self.down_ms, Start(self.down_ms, self.spread_ms).stated_spread_ms)

    @property
    def stop(self) -> Stop:
        """How pods end."""
        return Stop(self.pre_stop_ms, self.grace_ms, self.graceful, self.suspend_ms)

    @property
    def plan_id(self) -> str:
        """The plan's name in tables."""
        text = (
            f"surge {self.surge}, unavailable {self.unavailable}, pause {duration(self.pause_ms)}"
        )
        if self.stop.suspended_ms:
            text += f", suspend {duration(self.suspend_ms)}"
        return f"{text}, {self.order}{', killed' if self.stop.killed else ''}"

    def edit(self, change: str, groups: str) -> Deploy:
        """Return the scenario edit that deploys groups in this way."""
        what, _, value = change.partition("=")
        values: dict[str, Any] = {
            "at": read_moment(AT), "group": (groups,), "surge": self.surge,
            "unavailable": self.unavailable, "pause": self.pause_ms, "order": self.order,
            "start": self.start, "ready": self.ready,
            "graceful": self.graceful, "address": self.address, "min_ready": self.min_ready_ms,
            "pre_stop": self.pre_stop_ms, "suspend": self.suspend_ms, "grace": self.grace_ms,
            "workload": self.workload,
        }  # fmt: skip
        if what == SWITCH_STRATEGY:
            return SwitchStrategy(**values, strategy=value)
        return RollingRestart(**values, version=value if what == UPGRADE else None)

    def scenario(self, change: str, groups: str) -> Scenario:
        """Return the scenario that consists of this edit."""
        return Scenario(NAME, self.plan_id, (self.edit(change, groups),))

    def as_toml(self, change: str, groups: str) -> str:
        """Return the text of that scenario, for ``plan --scenario``."""
        head = f"name = {quoted(NAME)}\ndescription = {quoted(self.plan_id)}\n"
        return head + self.edit_toml(change, groups)

    def edit_toml(self, change: str, groups: str) -> str:
        """Return the text of the edit that deploys groups in this way."""
        what, _, value = change.partition("=")
        more = {
            SWITCH_STRATEGY: f"strategy = {quoted(value)}\n",
            UPGRADE: f"version = {quoted(value)}\n",
        }
        kind = SwitchStrategy.KIND if what == SWITCH_STRATEGY else RollingRestart.KIND
        return (
            f"\n[[edit]]\nkind = {quoted(kind)}\nat = {quoted(AT)}\ngroup = {quoted(groups)}\n"
            f"{more.get(what, '')}"
            f"workload = {quoted(self.workload)}\n"
            f"surge = {quoted(self.surge)}\nunavailable = {quoted(self.unavailable)}\n"
            f"start = {{median = {quoted(duration(self.down_ms))}, "
            f"spread = {quoted(duration(self.start.stated_spread_ms))}}}\n"
            f"ready = {quoted(ready_text(self.ready))}\n"
            f"min_ready = {quoted(duration(self.min_ready_ms))}\n"
            f"pause = {quoted(duration(self.pause_ms))}\norder = {quoted(self.order)}\n"
            f"pre_stop = {quoted(duration(self.pre_stop_ms))}\n"
            f"suspend = {quoted(duration(self.suspend_ms))}\n"
            f"grace = {quoted(duration(self.grace_ms))}\n"
            f"graceful = {str(self.graceful).lower()}\naddress = {quoted(self.address)}\n"
        )

    def as_strategy(self, rests_on: Iterable[str] = ()) -> str:
        """Return the part of a ``spec`` that deploys in this way, with a probe that fits; YAML.

        Args:
            rests_on: sentences to add as comments.
        """
        seconds = -(-(self.min_ready_ms + self.pause_ms) // 1000)
        comments = [f"# Assumed: {assumption}." for assumption in self.assumptions()]
        comments += [f"# {sentence}" for sentence in rests_on]
        if self.stop.killed_in_hook:
            comments.append(f"# {self.stop.killed_in_hook}")
        if self.pause_ms:
            comments.append(f"# minReadySeconds includes the pause of {duration(self.pause_ms)}")
            if self.surge not in pods.NOTHING:
                comments.append(
                    "# so old pods stop after the pause; the simulation stops them before it"
                )
        if self.order not in (deploys.REPLICA_SET, deploys.ORDINAL, deploys.RANDOM):
            comments.append(f"# Kubernetes chooses which pods stop; the simulation: {self.order}")
        lines = [*comments, f"minReadySeconds: {seconds}"]
        if self.workload == deploys.STATEFUL_SET:
            lines += [
                "updateStrategy:",
                "  type: RollingUpdate",
                "  rollingUpdate:",
                f"    maxUnavailable: {self.unavailable}",
            ]
        else:
            lines += [
                "strategy:",
                "  type: RollingUpdate",
                "  rollingUpdate:",
                f"    maxSurge: {self.surge}",
                f"    maxUnavailable: {self.unavailable}",
            ]
        return "\n".join([*lines, *self._template()]) + "\n"

    def _template(self) -> Iterator[str]:
        """Yield the pods' template: the grace period, and the probe of the simulation."""
        yield "template:"
        yield "  spec:"
        yield f"    terminationGracePeriodSeconds: {-(-self.grace_ms // 1000)}"
        suspends = self.stop.suspended_ms > 0
        if isinstance(self.ready, str) and not suspends:
            return
        yield "    containers:"
        yield "    - name: consumer  # yours"
        if suspends:
            wait = f"sleep {_seconds(self.pre_stop_ms)}; " if self.pre_stop_ms else ""
            file = "/tmp/consumer-suspend"
            yield "      lifecycle:"
            yield "        # the application calls the consumer's suspend() when this file appears;"
            yield "        # Kubernetes sends SIGTERM after the hook"
            yield "        preStop:"
            yield (
                f'          exec: {{command: [sh, -c, "{wait}touch {file}; '
                f'sleep {_seconds(self.suspend_ms)}"]}}'
            )
        if isinstance(self.ready, str):
            return
        yield "      readinessProbe:"
        yield "        # must fail until the consumer's start() has returned; the application"
        yield "        # writes this file then, as RocketMQ's client has no probe of its own"
        yield "        exec: {command: [test, -f, /tmp/consumer-started]}"
        yield "        periodSeconds: 1"

    def assumptions(self) -> Iterator[str]:
        """Yield the assumptions about Kubernetes in every future of this plan."""
        spread_ms = self.start.stated_spread_ms
        if spread_ms:
            yield (
                f"a pod joins {duration(self.down_ms)} after its creation (median), one in six "
                f"more than {duration(spread_ms)} later"
            )
        else:
            yield f"every pod joins {duration(self.down_ms)} after its creation"
        if self.stop.suspended_ms:
            yield (
                f"each consumer is suspended for {duration(self.stop.suspended_ms)} before it "
                f"{'is killed' if self.stop.killed else 'stops'}, by its preStop hook"
            )
        if isinstance(self.ready, str):
            yield (
                "there is no readinessProbe, so a pod is Ready "
                f"{duration(pods.CONTAINER_MS)} after its creation"
            )
        elif self.ready:
            side = "after" if self.ready > 0 else "before"
            yield f"a pod is Ready {duration(abs(self.ready))} {side} its consumer joins the group"
        else:
            yield "a pod is Ready once its consumer has joined the group, which takes a probe"


def ready_text(ready: Ready) -> str:
    """Return text that `pods.read_ready` reads."""
    if isinstance(ready, str):
        return ready
    return f"{'-' if ready < 0 else ''}{duration(abs(ready))}" if ready else pods.JOIN


def _seconds(ms: int) -> str:
    """Return a time as ``sleep`` in GNU and BusyBox reads it.

    >>> _seconds(5_000), _seconds(400)
    ('5', '0.4')
    """
    return f"{ms / SECOND_MS:.10g}"


def duration(ms: int) -> str:
    """Return a duration as `read_duration` reads it.

    >>> duration(15_000), duration(2_100)
    ('15s', '2100ms')
    """
    return f"{ms}ms" if ms % 1000 else f"{ms // 1000}s"


def quoted(value: Amount) -> str:
    """Return a number, or a string quoted as in TOML."""
    if isinstance(value, int):
        return str(value)
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


TOGETHER, EACH_GROUP = DECIDED = ("together", "group")
"""One decision for all groups, or one per group."""
RESTART, UPGRADE, SWITCH_STRATEGY = CHANGES = ("restart", "upgrade", "switch-strategy")
DEFAULT = "25%"
"""Kubernetes' default surge and unavailable for a RollingUpdate."""
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
    """The maximum cost of a rollout over all groups; None: unlimited.

    99 % of the futures must keep the first four; ``min_members`` applies to each group.
    ``max_no_owner_s`` does not limit the time that a queue's only owner is suspended.
    """

    max_read_again: float | None = None
    max_no_owner_s: float | None = None
    max_double_s: float | None = None
    finish_within: int | None = None
    min_members: int | None = None


@dataclass(frozen=True, slots=True)
class Prices:
    """The prices of a message read again, a queue-second that no client reads and an hour of an
    extra pod.

    ``no_owner_s`` is also the price of a queue-second whose only owner is suspended.
    """

    copy: float = table_keys.key(_from_0_up, 0.0)
    no_owner_s: float = table_keys.key(_from_0_up, 0.0)
    pod_hour: float = table_keys.key(_from_0_up, 0.0)


@dataclass(frozen=True)
class Search:
    """A search: the change to deploy, its budgets, and the paces to choose from.

    With ``decide = "group"`` each group is searched separately, with its own budgets. Every
    combination of ``surge``, ``unavailable``, ``pause``, ``order`` and ``suspend`` is a plan.
    """

    change: str = table_keys.needed(read_change)
    groups: str = table_keys.needed(table_keys.words)
    budgets: Budgets = Budgets()
    prices: Prices | None = None
    decide: str = table_keys.key(table_keys.one_of(*DECIDED), TOGETHER)
    surge: tuple[Amount, ...] = table_keys.key(several(pods.amount), AMOUNTS)
    unavailable: tuple[Amount, ...] = table_keys.key(several(pods.amount), AMOUNTS)
    pause: tuple[int, ...] = table_keys.key(several(read_duration), (0, 5_000, 15_000, 60_000))
    order: tuple[str, ...] = table_keys.key(several(table_keys.one_of(*deploys.ORDERS)), ())
    suspend: tuple[int, ...] = table_keys.key(several(read_duration), (0,))
    down: int | None = table_keys.key(read_duration)
    start: Start | None = table_keys.key(pods.read_start)  # noqa: RUF009  # a field, made once
    ready: Ready = table_keys.key(pods.read_ready, 0)  # noqa: RUF009  # a field, made once
    min_ready: int = table_keys.key(read_duration, 0)
    pre_stop: int = table_keys.key(read_duration, 0)
    grace: int = table_keys.key(read_duration, pods.GRACE_MS)
    workload: str = table_keys.key(table_keys.one_of(*deploys.WORKLOADS), deploys.DEPLOYMENT)
    graceful: bool = table_keys.key(table_keys.yes_or_no, True)
    address: str = table_keys.key(table_keys.one_of(*deploys.ADDRESSES), deploys.NEW)
    expectations: tuple[Expectation, ...] = ()

    @property
    def in_order(self) -> bool:
        """Return True for a StatefulSet: no surge, pods in order of their ordinals."""
        return self.workload == deploys.STATEFUL_SET

    @property
    def orders(self) -> tuple[str, ...]:
        """The orders to choose from; by default, that of the workload."""
        return self.order or (deploys.ORDINAL if self.in_order else deploys.REPLICA_SET,)

    def default(self) -> RolloutPlan:
        """Return the plan for a workload that does not specify a strategy."""
        start = self.start or Start(DOWN_MS if self.down is None else self.down)
        surge, unavailable = (0, 1) if self.in_order else (DEFAULT, DEFAULT)
        return RolloutPlan(
            surge=surge,
            unavailable=unavailable,
            pause_ms=0,
            order=self.orders[0],
            down_ms=start.median_ms,
            ready=self.ready,
            graceful=self.graceful,
            address=self.address,
            spread_ms=start.spread_ms,
            min_ready_ms=self.min_ready,
            pre_stop_ms=self.pre_stop,
            grace_ms=self.grace,
            workload=self.workload,
        )

    def plans(self, members: Sequence[int]) -> tuple[RolloutPlan, ...]:
        """Return the plans that differ for groups of this many members; Kubernetes' default first.

        Raises:
            UsageError: There are more than `MOST_PLANS`.
        """
        first = self.default()
        combined = (
            replace(
                first,
                surge=surge,
                unavailable=unavailable,
                pause_ms=pause,
                order=order,
                suspend_ms=suspend,
            )
            for surge, unavailable, pause, order, suspend in product(
                (0,) if self.in_order else self.surge,
                self.unavailable,
                self.pause,
                self.orders,
                self.suspend,
            )
            if surge not in pods.NOTHING or unavailable not in pods.NOTHING
        )
        plans: dict[Any, RolloutPlan] = {}
        for plan in (first, *combined):
            turns = tuple(self.turns(plan, number) for number in members)
            together = all(len(set(of_group)) == 1 for of_group in turns)
            order = "" if together else plan.order
            plans.setdefault((turns, order, plan.stop.suspended_ms), plan)
        if len(plans) > MOST_PLANS:
            raise UsageError(f"[plans] make {len(plans):,} plans; at most {MOST_PLANS:,} are valid")
        return tuple(plans.values())

    def turns(
        self, plan: RolloutPlan, members: int, draws: Draws | None = None
    ) -> tuple[Turn, ...]:
        """Return when each of `members` members is replaced; without draws, with equal start
        times.
        """
        return plan.edit(self.change, self.groups).turns(members, draws)


_OF_SEARCH = table_keys.keys_of(Search)
_TOP = {name: key for name, key in _OF_SEARCH.items() if key.required or name == "decide"}
_TABLES: Mapping[str, Mapping[str, TableKey]] = {
    "budgets": {
        "max_read_again": TableKey(_from_0_up),
        "max_no_owner_s": TableKey(_from_0_up),
        "max_double_s": TableKey(_from_0_up),
        "min_members": TableKey(table_keys.whole(0, 1_000_000)),
        "finish_within": TableKey(read_duration),
    },
    "prices": table_keys.keys_of(Prices),
    "plans": {name: key for name, key in _OF_SEARCH.items() if name not in _TOP},
}


def read_search(path: str | Path) -> Search:
    """Return the search from a file, or a bundled search by name.

    Raises:
        UsageError: The message has one line per mistake, with ``file:line`` and the nearest valid
            name.
    """
    return parse_search(named_text(Path(path), "rollouts"), str(path))


def parse_search(text: str, file: str) -> Search:
    """Return the search in a TOML text; errors are those of `read_search`."""
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
    if pace.get("workload") == deploys.STATEFUL_SET and "surge" in pace:
        reading.mistake("surge", "plans", "surge excludes workload = 'stateful_set'")
    if "down" in pace and "start" in pace:
        reading.mistake("down", "plans", "down excludes start: its median is that time")
    if all(value in pods.NOTHING for amounts in chosen for value in amounts):
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
    """The values in a file, and the mistakes in them."""

    file: str
    lines: TomlLines
    mistakes: list[str] = field(default_factory=list)

    def mistake(self, key: str, table: str, text: str) -> None:
        self.mistakes.append(f"{self.file}:{self.lines.of_key(key, table)}: {text}")

    def values(
        self, table: str, content: Any, keys: Mapping[str, TableKey], valid_keys: Collection[str]
    ) -> dict[str, Any]:
        """Return the values that were read; record mistakes."""
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
