"""The configuration of scalers: the policy files for ``rebalance autoscale``."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rebalance_core.contracts.settings_file import named_text, toml_document
from rebalance_core.model.errors import UsageError
from rebalance_core.model.times import DAY_MS, SECOND_MS, read_duration
from rebalance_core.planning import table_keys
from rebalance_core.planning.scenario.pods import DEFAULT_SIGMA, Start, Stop, read_start
from rebalance_core.planning.table_keys import TableKey, read_values
from rebalance_core.planning.toml_lines import TomlLines

HPA, KEDA, FIXED, FUNCTION = "hpa", "keda", "fixed", "function"
RECORDED = "recorded"
"""The kind of a policy of recorded replicas, and its name, which no other policy may have."""
KINDS = (HPA, KEDA, FIXED)
PODS, PERCENT = STEP_TYPES = ("Pods", "Percent")
MAX, MIN, DISABLED = SELECTS = ("Max", "Min", "Disabled")
MOST_REPLICAS = 1_000
LONGEST_WINDOW_S = 3_600
"""``stabilizationWindowSeconds`` is at most an hour (HPAScalingRules)."""
LONGEST_PERIOD_S = 1_800
"""``periodSeconds`` is at most 30 minutes (HPAScalingPolicy)."""


def seconds(low: int, high: int) -> table_keys.ValueReader:
    """Return a reader of durations in whole seconds within a range."""

    def read(value: Any) -> int:
        ms = read_duration(value)
        if ms % SECOND_MS or not low <= ms // SECOND_MS <= high:
            raise ValueError(f"expected whole seconds from {low} s to {high:,} s")
        return ms // SECOND_MS

    return read


_above_0 = table_keys.number_that(lambda value: 0 < value < 1e12, "above 0")
_from_0 = table_keys.number_that(lambda value: 0 <= value < 1e12, "from 0 up")
_replicas = table_keys.whole(1, MOST_REPLICAS)
_window = seconds(0, LONGEST_WINDOW_S)


@dataclass(frozen=True, slots=True)
class StepLimit:
    """An HPAScalingPolicy: the maximum change within a period."""

    type: str = table_keys.needed(table_keys.one_of(*STEP_TYPES))
    value: int = table_keys.needed(table_keys.whole(1, 1_000_000))
    period_s: int = table_keys.needed(seconds(1, LONGEST_PERIOD_S))


_LIMIT_KEYS = {name.removesuffix("_s"): key for name, key in table_keys.keys_of(StepLimit).items()}
LIMIT_FORM = '{type = "Pods", value = 4, period = "15s"}'


def read_limits(value: Any) -> tuple[StepLimit, ...]:
    """Read ``policies``, a list of tables."""
    if not isinstance(value, list) or not value:
        raise ValueError(f"expected a list of tables such as {LIMIT_FORM}")
    limits = []
    for each in value:
        if not isinstance(each, Mapping):
            raise ValueError(f"expected a list of tables such as {LIMIT_FORM}")
        values, wrong = read_values(each, _LIMIT_KEYS, " of policies")
        missing = [name for name in _LIMIT_KEYS if name not in each]
        if wrong or missing:
            reasons = [text for _, text in wrong] + [f"{name} is missing" for name in missing]
            raise ValueError("; ".join(reasons))
        limits.append(StepLimit(values["type"], values["value"], values["period"]))
    return tuple(limits)


@dataclass(frozen=True, slots=True)
class Direction:
    """An HPAScalingRules: how fast scaling in one direction may be.

    Attributes:
        stabilization_s: the window; None for the direction's default.
        select: which of several limits applies.
        limits: the limits, each over a period.
    """

    stabilization_s: int | None = None
    select: str = MAX
    limits: tuple[StepLimit, ...] = ()


UP_LIMITS = (StepLimit(PODS, 4, 15), StepLimit(PERCENT, 100, 15))
DOWN_LIMITS = (StepLimit(PERCENT, 100, 15),)
"""The default policies of a direction (``SetDefaults_HorizontalPodAutoscalerBehavior``)."""
DOWN_WINDOW_S = 300
"""``--horizontal-pod-autoscaler-downscale-stabilization`` of kube-controller-manager."""
SYNC_S = 15
"""``--horizontal-pod-autoscaler-sync-period``."""
TOLERANCE = 0.1
"""``--horizontal-pod-autoscaler-tolerance``."""


@dataclass(frozen=True, slots=True)
class Target:
    """A metric and its AverageValue, the target per replica."""

    target: float = table_keys.needed(_above_0)


@dataclass(frozen=True, slots=True)
class Keda:
    """What a ScaledObject adds to the HPA that KEDA creates for it.

    Attributes:
        polling_s: ``pollingInterval``, at which KEDA itself checks whether to scale to or from
            zero.
        cooldown_s: ``cooldownPeriod`` from the last activity to zero replicas.
        activation: the value above which the trigger is active.
        failure_threshold: the threshold of ``fallback``, which applies after more consecutive
            failures than this.
        fallback: ``fallback.replicas``, if any.
    """

    polling_s: int = 30
    cooldown_s: int = 300
    activation: float = 0.0
    failure_threshold: int = 3
    fallback: int | None = None


@dataclass(frozen=True, slots=True)
class Metrics:
    """How late a scaler sees the lag.

    Attributes:
        scrape_s: the time between two values from the exporter.
        delay_s: the time until the scaler can read a value.
        rate_window_s: the period over which the rate is averaged.
        outages: (start, end) of periods without values, in seconds after the start of the replay.
    """

    scrape_s: int = 30
    delay_s: int = 15
    rate_window_s: int = 60
    outages: tuple[tuple[int, int], ...] = ()

    def sampled_s(self, at_s: int) -> int | None:
        """Return the second of the value that a scaler reads, or None if it gets none."""
        second = (at_s - self.delay_s) // self.scrape_s * self.scrape_s
        missing = second < 0 or any(begin <= at_s < end for begin, end in self.outages)
        return None if missing else second


@dataclass(frozen=True, slots=True)
class Seen:
    """The input of a deciding function: the delayed metrics that a scaler sees, None without a
    value.
    """

    at_s: int
    replicas: int
    lag: float | None
    rate: float | None


@dataclass(frozen=True)
class Policy:
    """A scaler.

    Attributes:
        name: the name of the policy.
        kind: one of `KINDS`, or `FUNCTION` or `RECORDED`.
        least: the minimum number of replicas; 0 only with KEDA.
        most: the maximum number of replicas.
        replicas: the fixed number of replicas.
        sizes: the allowed numbers of replicas, to which the number is rounded up; empty for any.
        lag: the target for waiting messages per replica, if used.
        rate: the target for arriving messages per second and replica, if used.
        sync_s: how often the HPA decides.
        tolerance: the deviation of the ratio from 1 that does not cause scaling.
        down_window_s: the scale-down window without a ``scale_down``.
        up: the limits of scale-up; if `up` and `down` are None, there is no ``behavior`` and other
            limits apply (`hpa`).
        down: the limits of scale-down.
        keda: the settings of KEDA; None for a plain HPA.
        metrics: the delays of metrics.
        start: how pods start.
        stop: how pods stop.
        decide: the function of a `FUNCTION`.
        changes: for `RECORDED`: (seconds after the start of the replay, replicas), ascending; the
            first entry is for the start.
        varies: the name of the policy that it is a variation of.
    """

    name: str
    kind: str = HPA
    least: int = 1
    most: int = 10
    replicas: int | None = None
    sizes: tuple[int, ...] = ()
    lag: Target | None = None
    rate: Target | None = None
    sync_s: int = SYNC_S
    tolerance: float = TOLERANCE
    down_window_s: int = DOWN_WINDOW_S
    up: Direction | None = None
    down: Direction | None = None
    keda: Keda | None = None
    metrics: Metrics = field(default_factory=Metrics)
    start: Start = Start(15_000, round(15_000 * DEFAULT_SIGMA))  # noqa: RUF009  # a value
    stop: Stop = Stop()  # noqa: RUF009  # a value
    decide: Callable[[Seen], int] | None = None
    changes: tuple[tuple[int, int], ...] = ()
    varies: str | None = None

    @property
    def begin(self) -> int:
        """The number of replicas with which a replay begins."""
        if self.replicas is not None:
            return self.replicas
        if self.changes:
            return self.changes[0][1]
        return self.allowed(max(self.least, 1))

    @property
    def largest(self) -> int:
        """The maximum number of replicas that it can ever have."""
        recorded = [replicas for _, replicas in self.changes]
        return self.replicas or max([self.most, *self.sizes[-1:], *recorded])

    def recorded(self, at_s: int) -> int:
        """Return the replicas that were recorded for a second."""
        place = bisect_right(self.changes, at_s, key=lambda change: change[0])
        return self.changes[max(place - 1, 0)][1]

    def allowed(self, wanted: int) -> int:
        """Return the smallest allowed size of at least ``wanted``, or the largest size."""
        if not self.sizes:
            return wanted
        return next((size for size in self.sizes if size >= wanted), self.sizes[-1])


_DIRECTION = {
    "stabilization": TableKey(_window),
    "select": TableKey(table_keys.one_of(*SELECTS)),
    "policies": TableKey(read_limits),
}


def _sizes(value: Any) -> tuple[int, ...]:
    read = table_keys.whole(1, MOST_REPLICAS)
    if not isinstance(value, list) or not value:
        raise ValueError("expected a list of numbers, e.g. [4, 8, 16]")
    return tuple(sorted({read(each) for each in value}))


_TOP = {
    "name": table_keys.required(table_keys.words),
    "kind": TableKey(table_keys.one_of(*KINDS)),
    "min": TableKey(table_keys.whole(0, MOST_REPLICAS)),
    "max": TableKey(_replicas),
    "replicas": TableKey(_replicas),
    "sizes": TableKey(_sizes),
    "start": TableKey(read_start),
    "pre_stop": TableKey(read_duration),
    "grace": TableKey(read_duration),
    "graceful": TableKey(table_keys.yes_or_no),
}
_TABLES: Mapping[str, Mapping[str, TableKey]] = {
    "lag": {"target": table_keys.required(_above_0)},
    "rate": {"target": table_keys.required(_above_0), "window": TableKey(seconds(1, 3_600))},
    "controller": {
        "sync": TableKey(seconds(1, 300)),
        "tolerance": TableKey(table_keys.number_that(lambda x: 0 <= x < 1, "from 0 to below 1")),
        "downscale_stabilization": TableKey(_window),
    },
    "scale_up": _DIRECTION,
    "scale_down": _DIRECTION,
    "keda": {
        "polling": TableKey(seconds(1, 3_600)),
        "cooldown": TableKey(seconds(0, DAY_MS // SECOND_MS)),
        "activation": TableKey(_from_0),
        "failure_threshold": TableKey(table_keys.whole(0, 1_000)),
        "fallback": TableKey(_replicas),
    },
    "metrics": {
        "scrape": TableKey(seconds(1, 3_600)),
        "delay": TableKey(seconds(0, 3_600)),
    },
}


def read_policies(paths: Sequence[str]) -> tuple[Policy, ...]:
    """Return the policies in these files, or the bundled policies with these names.

    Raises:
        UsageError: A file is invalid (the message has one line per mistake, with ``file:line`` and
            the nearest valid name), or two policies have the same name.
    """
    policies, mistakes = [], []
    for path in paths:
        try:
            policies.append(parse_policy(named_text(Path(path), "policies"), str(path)))
        except UsageError as error:
            mistakes += str(error).splitlines()
    names = [policy.name for policy in policies]
    mistakes += [
        f"--policy: {name!r} is the name of two policies; choose another"
        for name in sorted({name for name in names if names.count(name) > 1})
    ]
    if mistakes:
        raise UsageError("\n".join(mistakes))
    return tuple(policies)


def parse_policy(text: str, file: str) -> Policy:
    """Parse the policy in a TOML text; errors are those of `read_policies`."""
    content = toml_document(text, file)
    lines, mistakes = TomlLines(text), list[str]()

    def wrong(key: str, table: str, reason: str) -> None:
        mistakes.append(f"{file}:{lines.of_key(key, table)}: {reason}")

    def values(
        table: str, of: Any, keys: Mapping[str, TableKey], valid: Sequence[str]
    ) -> dict[str, Any]:
        if not isinstance(of, Mapping):
            wrong(table, "", f"{table} must be a table that begins with [{table}]")
            return {}
        read, reasons = read_values(of, keys, valid_keys=valid, valid="valid")
        for key, reason in reasons:
            wrong(key, table, reason)
        for key, declared in keys.items():
            if declared.required and key not in of:
                wrong(key, table, f"{key} is missing")
        return read

    given = {name: content.pop(name) for name in _TABLES if name in content}
    top = values("", content, _TOP, [*_TOP, *_TABLES])
    tables = {name: values(name, given[name], _TABLES[name], [*_TABLES[name]]) for name in given}
    if not mistakes:
        for key, table, reason in _contradictions(top, tables):
            wrong(key, table, reason)
    if mistakes:
        raise UsageError("\n".join(mistakes))
    return _policy(top, tables)


def _contradictions(top: Mapping[str, Any], tables: Mapping[str, Any]) -> list[tuple[str, ...]]:
    kind = top.get("kind", HPA)
    found = list[tuple[str, ...]]()
    if top["name"] == RECORDED:
        found.append(("name", "", f"name {RECORDED!r} is that of the replicas of --recorded"))
    if kind == FIXED:
        if "replicas" not in top:
            found.append(("kind", "", 'kind = "fixed" needs replicas'))
        found += [
            (name, "", f'kind = "fixed" excludes {name}')
            for name in ("min", "max", "sizes", "pre_stop", "grace", "graceful")
            if name in top
        ]
        found += [("", name, f'kind = "fixed" excludes [{name}]') for name in tables]
        return found
    if "replicas" in top:
        found.append(("replicas", "", 'replicas needs kind = "fixed"'))
    least, most = _bounds(kind, top)
    if least > most:
        found.append(("min" if "min" in top else "max", "", f"min {least} is above max {most}"))
    if least == 0 and kind != KEDA:
        found.append(("min", "", 'min = 0 needs kind = "keda"'))
    if "lag" not in tables and "rate" not in tables:
        found.append(("kind", "", "[lag] or [rate] is missing: what it scales by"))
    if "keda" in tables and kind != KEDA:
        found.append(("", "keda", '[keda] needs kind = "keda"'))
    outside = [size for size in top.get("sizes", ()) if not max(least, 1) <= size <= most]
    if outside:
        found.append(("sizes", "", f"size {outside[0]} is not within min {least} and max {most}"))
    return found


def _bounds(kind: str, top: Mapping[str, Any]) -> tuple[int, int]:
    """Return the minimum and maximum number of replicas; for a ScaledObject, 0 and 100 by
    default.
    """
    sizes = top.get("sizes", ())
    largest = max(sizes, default=100 if kind == KEDA else 10)
    return top.get("min", 0 if kind == KEDA else 1), top.get("max", largest)


def _policy(top: Mapping[str, Any], tables: Mapping[str, Mapping[str, Any]]) -> Policy:
    kind = top.get("kind", HPA)
    start = {"start": top["start"]} if "start" in top else {}
    usual_stop = Stop()
    stop = Stop(
        top.get("pre_stop", usual_stop.pre_stop_ms),
        top.get("grace", usual_stop.grace_ms),
        top.get("graceful", usual_stop.graceful),
    )
    if kind == FIXED:
        return Policy(top["name"], FIXED, replicas=top["replicas"], **start)
    least, most = _bounds(kind, top)
    flags = tables.get("controller", {})
    metrics, usual = tables.get("metrics", {}), Metrics()
    policy = Policy(
        name=top["name"],
        kind=kind,
        least=least,
        most=most,
        sizes=top.get("sizes", ()),
        lag=_target(tables, "lag"),
        rate=_target(tables, "rate"),
        sync_s=flags.get("sync", SYNC_S),
        tolerance=flags.get("tolerance", TOLERANCE),
        down_window_s=flags.get("downscale_stabilization", DOWN_WINDOW_S),
        metrics=Metrics(
            metrics.get("scrape", usual.scrape_s),
            metrics.get("delay", usual.delay_s),
            tables.get("rate", {}).get("window", usual.rate_window_s),
        ),
        stop=stop,
        **start,
    )
    if "scale_up" in tables or "scale_down" in tables:
        policy = replace(
            policy,
            up=_direction(tables.get("scale_up", {}), UP_LIMITS),
            down=_direction(tables.get("scale_down", {}), DOWN_LIMITS),
        )
    if kind != KEDA:
        return policy
    stated = tables.get("keda", {})
    names = {"polling": "polling_s", "cooldown": "cooldown_s"}
    return replace(policy, keda=Keda(**{names.get(k, k): v for k, v in stated.items()}))


def _target(tables: Mapping[str, Mapping[str, Any]], name: str) -> Target | None:
    return Target(tables[name]["target"]) if name in tables else None


def _direction(table: Mapping[str, Any], limits: tuple[StepLimit, ...]) -> Direction:
    return Direction(
        table.get("stabilization"), table.get("select", MAX), table.get("policies", limits)
    )
