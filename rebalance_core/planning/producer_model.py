"""Model files: TOML with ``[[broker]]``, ``[[brown_out]]``, ``[[outage]]``, ``[[producers]]``."""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from rebalance_core.contracts.settings_file import named_text, toml_document
from rebalance_core.model.errors import UsageError, did_you_mean, unknown_keys
from rebalance_core.model.times import SEND_TIMEOUT_MS
from rebalance_core.model.versions import parse_version
from rebalance_core.planning import table_keys
from rebalance_core.planning.table_keys import TableKey, read_values, required
from rebalance_core.planning.toml_lines import TomlLines
from rebalance_core.producers.latencies import (
    FixedLatency,
    Latency,
    LognormalLatency,
    UniformLatency,
)
from rebalance_core.producers.model import (
    BrokerModel,
    BrownOut,
    Outage,
    ProducerGroup,
    ProducerModel,
    Variant,
)
from rebalance_core.producers.send_failures import CONNECT, TIMEOUT
from rebalance_core.producers.send_record import RETRY_TIMES

MOST_MS = 3_600_000
MOST_SECONDS = 31 * 86_400
_FORMS: Mapping[str, tuple[str, ...]] = {
    "fixed": ("ms",),
    "uniform": ("low_ms", "high_ms"),
    "lognormal": ("median_ms", "p99_ms"),
}
_EXAMPLE = '{ distribution = "lognormal", median_ms = 3, p99_ms = 30 }'


def latency(value: Any) -> Latency:
    """Return a distribution: a table with ``distribution`` and its parameters, in ms."""
    if not isinstance(value, dict):
        raise ValueError(f"expected a table such as {_EXAMPLE}")
    form = table_keys.one_of(*_FORMS)(value.get("distribution"))
    names = _FORMS[form]
    parameters = (key for key in value if key != "distribution")
    for _, unknown in unknown_keys(parameters, names, whose=f" of {form}"):
        raise ValueError(unknown)
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
        return float(table_keys.number(0, MOST_MS)(value))
    except ValueError as error:
        raise ValueError(f"{name} = {value!r}: {error}") from None


_share = table_keys.number_that(lambda value: 0 <= value <= 1, "from 0 to 1")

TOP: Mapping[str, TableKey] = {
    "name": required(table_keys.words),
    "description": required(table_keys.words),
    "cluster": TableKey(table_keys.words, "model"),
    "seed": TableKey(table_keys.whole(0, 2**63 - 1), 0),
    "start_ms": TableKey(table_keys.whole(946_684_800_000, 7_289_654_399_999), 1_767_571_200_000),
    "seconds": required(table_keys.whole(1, MOST_SECONDS)),
    "slice_seconds": TableKey(table_keys.whole(1, MOST_SECONDS), 60),
}
_STRETCH: Mapping[str, TableKey] = {
    "broker": required(table_keys.words),
    "from_second": required(table_keys.whole(0, MOST_SECONDS)),
    "to_second": required(table_keys.whole(1, MOST_SECONDS)),
}
TABLES: Mapping[str, Mapping[str, TableKey]] = {
    "broker": {
        "name": required(table_keys.words),
        "queues": required(table_keys.whole(1, 65_536)),
        "latency": required(latency),
    },
    "brown_out": {**_STRETCH, "latency": required(latency), "errors": TableKey(_share, 0.0)},
    "outage": {
        **_STRETCH,
        "answer": TableKey(table_keys.one_of(CONNECT, TIMEOUT), CONNECT),
        "stays_in_route": TableKey(table_keys.yes_or_no, False),
    },
    "producers": {
        "group": required(table_keys.words),
        "topic": required(table_keys.words),
        "clients": required(table_keys.whole(1, 1_000_000)),
        "sends_per_second": required(table_keys.number(0, 100_000)),
        "client_version": TableKey(table_keys.parsed(parse_version), parse_version("5.3")),
        "fault_tolerance": TableKey(table_keys.yes_or_no, False),
        "detector": TableKey(table_keys.yes_or_no, False),
        "retries": TableKey(table_keys.whole(0, 100), RETRY_TIMES),
        "timeout_ms": TableKey(table_keys.whole(1, MOST_MS), SEND_TIMEOUT_MS),
    },
}
"""The keys in each array of tables; RocketMQ's own keys have RocketMQ's defaults."""


Values = dict[str, Any]


def read_model(path: str | Path) -> ProducerModel:
    """Return the model in a file, or a bundled model by name.

    Raises:
        UsageError: The message has one line per mistake, with ``file:line`` and the nearest valid
            name.
    """
    return parse_model(named_text(Path(path), "producers"), str(path))


def parse_model(text: str, file: str) -> ProducerModel:
    """Return the model in a TOML text; errors are those of `read_model`."""
    content = toml_document(text, file)
    lines, mistakes = TomlLines(text), list[str]()
    top = _values(
        {key: value for key, value in content.items() if key not in TABLES},
        TOP,
        (*TOP, *TABLES),
        lambda key: f"{file}:{lines.of_key(key)}",
        mistakes,
    )
    tables: dict[str, list[Values]] = {}
    for name, keys in TABLES.items():
        entries = content.get(name, [])
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            line = lines.of_key(name)
            mistakes.append(f"{file}:{line}: {name} must be tables that begin with [[{name}]]")
            entries = []
        tables[name] = [
            _values(
                entry,
                keys,
                keys,
                lambda key, name=name, i=i: f"{file}:{lines.of_key(key, name, i)}",
                mistakes,
            )
            for i, entry in enumerate(entries)
        ]
    if not mistakes:
        mistakes += [f"{file}:{line}: {what}" for line, what in _contradictions(top, tables, lines)]
    if mistakes:
        raise UsageError("\n".join(mistakes))
    return _model(top, tables)


def _values(
    table: Mapping[str, Any],
    keys: Mapping[str, TableKey],
    valid_keys: Collection[str],
    place_of: Any,
    mistakes: list[str],
) -> Values:
    """Return the values of a table, including defaults; mistakes are added."""
    values, wrong = read_values(table, keys, valid_keys=valid_keys)
    for name, key in keys.items():
        if key.required and name not in table:
            wrong.append((name, f"{name} is missing"))
    mistakes += [f"{place_of(name)}: {text}" for name, text in wrong]
    return {name: key.default for name, key in keys.items()} | values


def _contradictions(
    top: Values, tables: Mapping[str, list[Values]], lines: TomlLines
) -> Iterator[tuple[int, str]]:
    """Yield (line, mistake) for values that contradict each other."""
    for name, key in (("broker", "name"), ("producers", "group")):
        seen: set[str] = set()
        if not tables[name]:
            yield 1, f"there is no [[{name}]]; add at least one"
        for i, entry in enumerate(tables[name]):
            if entry[key] in seen:
                yield lines.of_key(key, name, i), f"{key} = {entry[key]!r} is used twice"
            seen.add(entry[key])
    brokers = [entry["name"] for entry in tables["broker"]]
    taken: list[tuple[str, int, int]] = []
    for name in ("brown_out", "outage"):
        for i, entry in enumerate(tables[name]):
            broker, begin, end = entry["broker"], entry["from_second"], entry["to_second"]
            if broker not in brokers:
                hint = did_you_mean(broker, brokers)
                line = lines.of_key("broker", name, i)
                yield line, f"unknown broker {broker!r}{hint} (brokers: {', '.join(brokers)})"
            line = lines.of_key("to_second", name, i)
            if not begin < end <= top["seconds"]:
                yield line, f"to_second = {end}: expected more than from_second and at most seconds"
            if any(broker == b and begin < t and f < end for b, f, t in taken):
                yield line, f"{broker} is already disturbed for part of this period"
            taken.append((broker, begin, end))


def _model(top: Values, tables: Mapping[str, list[Values]]) -> ProducerModel:
    brown_outs = [
        BrownOut(
            o["broker"], o["from_second"] * 1000, o["to_second"] * 1000, o["latency"], o["errors"]
        )
        for o in tables["brown_out"]
    ]
    outages = [
        Outage(
            o["broker"],
            o["from_second"] * 1000,
            o["to_second"] * 1000,
            o["answer"],
            o["stays_in_route"],
        )
        for o in tables["outage"]
    ]
    return ProducerModel(
        name=top["name"],
        description=top["description"].strip(),
        cluster=top["cluster"],
        seed=top["seed"],
        start_ms=top["start_ms"],
        length_ms=top["seconds"] * 1000,
        slice_ms=top["slice_seconds"] * 1000,
        brokers=tuple(BrokerModel(**broker) for broker in tables["broker"]),
        disturbances=(*brown_outs, *outages),
        groups=tuple(_group(producers) for producers in tables["producers"]),
    )


def _group(producers: Values) -> ProducerGroup:
    return ProducerGroup(
        name=producers["group"],
        topic=producers["topic"],
        clients=producers["clients"],
        sends_per_second=producers["sends_per_second"],
        variant=Variant(producers["client_version"], producers["fault_tolerance"]),
        detector=producers["detector"],
        retries=producers["retries"],
        timeout_ms=producers["timeout_ms"],
    )
