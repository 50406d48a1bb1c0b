"""The tables of a model file, and how their values are read."""

from collections.abc import Mapping
from typing import Any

from rebalance_core.model.errors import UsageError, did_you_mean
from rebalance_core.model.times import SEND_TIMEOUT_MS
from rebalance_core.model.versions import Version, parse_version
from rebalance_core.planning.scenario.keys import Key, number, one_of, required, whole, words
from rebalance_core.producers.sending.answers import CONNECT, TIMEOUT
from rebalance_core.producers.sending.producer import RETRY_TIMES
from rebalance_core.producers.simulation.latency import (
    FixedLatency,
    Latency,
    LognormalLatency,
    UniformLatency,
)

MOST_MS = 3_600_000
MOST_SECONDS = 31 * 86_400
_FORMS: Mapping[str, tuple[str, ...]] = {
    "fixed": ("ms",),
    "uniform": ("low_ms", "high_ms"),
    "lognormal": ("median_ms", "p99_ms"),
}
_EXAMPLE = '{ distribution = "lognormal", median_ms = 3, p99_ms = 30 }'


def latency(value: Any) -> Latency:
    """A distribution: a table with ``distribution`` and its parameters, in ms."""
    if not isinstance(value, dict):
        raise ValueError(f"expected a table such as {_EXAMPLE}")
    form = one_of(*_FORMS)(value.get("distribution"))
    names = _FORMS[form]
    for key in value:
        if key != "distribution" and key not in names:
            hint = did_you_mean(key, names)
            raise ValueError(f"unknown key {key} of {form}{hint} (valid keys: {', '.join(names)})")
    numbers = []
    for name in names:
        if name not in value:
            raise ValueError(f"{form} needs {name}")
        numbers.append(_milliseconds(name, value[name]))
    if form == "fixed":
        return FixedLatency(*numbers)
    if not numbers[0] < numbers[1]:
        raise ValueError(f"{names[1]} must be above {names[0]}")
    return UniformLatency(*numbers) if form == "uniform" else LognormalLatency(*numbers)


def _milliseconds(name: str, value: Any) -> float:
    try:
        return float(number(0, MOST_MS)(value))
    except ValueError as error:
        raise ValueError(f"{name} = {value!r}: {error}") from None


def version(value: Any) -> Version:
    """A version of the client."""
    try:
        return parse_version(words(value))
    except UsageError as error:
        raise ValueError(str(error)) from None


def share(value: Any) -> float:
    """A number from 0 to 1."""
    fits = isinstance(value, int | float) and not isinstance(value, bool)
    if not fits or not 0 <= value <= 1:
        raise ValueError("expected a number from 0 to 1")
    return float(value)


def flag(value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise ValueError("expected true or false")
    return value


TOP: Mapping[str, Key] = {
    "name": required(words),
    "description": required(words),
    "cluster": Key(words, "model"),
    "seed": Key(whole(0, 2**63 - 1), 0),
    "start_ms": Key(whole(946_684_800_000, 7_289_654_399_999), 1_767_571_200_000),
    "seconds": required(whole(1, MOST_SECONDS)),
    "slice_seconds": Key(whole(1, MOST_SECONDS), 60),
}
_STRETCH: Mapping[str, Key] = {
    "broker": required(words),
    "from_second": required(whole(0, MOST_SECONDS)),
    "to_second": required(whole(1, MOST_SECONDS)),
}
TABLES: Mapping[str, Mapping[str, Key]] = {
    "broker": {
        "name": required(words),
        "queues": required(whole(1, 65_536)),
        "latency": required(latency),
    },
    "brown_out": {**_STRETCH, "latency": required(latency), "errors": Key(share, 0.0)},
    "outage": {
        **_STRETCH,
        "answer": Key(one_of(CONNECT, TIMEOUT), CONNECT),
        "stays_in_route": Key(flag, False),
    },
    "producers": {
        "group": required(words),
        "topic": required(words),
        "clients": required(whole(1, 1_000_000)),
        "sends_per_second": required(number(0, 100_000)),
        "client_version": Key(version, parse_version("5.3")),
        "fault_tolerance": Key(flag, False),
        "detector": Key(flag, False),
        "retries": Key(whole(0, 100), RETRY_TIMES),
        "timeout_ms": Key(whole(1, MOST_MS), SEND_TIMEOUT_MS),
    },
}
"""By name of an array of tables its keys; defaults are upstream's where they are RocketMQ's."""
