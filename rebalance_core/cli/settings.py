"""Settings: the package's defaults, then each --config file in order, then --set, then options."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rebalance_core.checks.row_limits import BadRowLimits
from rebalance_core.cli.options import JobOptions
from rebalance_core.engine.options import LedgerConfig, SimulationOptions
from rebalance_core.model.errors import RebalanceError, UsageError, did_you_mean
from rebalance_core.model.versions import parse_version
from rebalance_core.synthetic.fleet import RANGES

if TYPE_CHECKING:
    from rebalance_core.ingest.collection_settings import Assumptions

# Every key of a configuration file, once: its type, its range and what is valid in words.


@dataclass(frozen=True)
class SettingKey:
    """One key. `path` is dotted as in `--set`; an `optional` key may be missing everywhere."""

    path: str
    type: type[bool] | type[int] | type[float] | type[str]
    valid: str
    low: float | None = None
    high: float | None = None
    one_of: tuple[str, ...] = ()
    optional: bool = False

    def accepts(self, value: Any) -> bool:
        """True if `value`, as TOML gives it, is of the type and in the range."""
        if self.type is bool or isinstance(value, bool):
            return self.type is bool and isinstance(value, bool)
        if self.type is float:
            fits = isinstance(value, int | float)
        else:
            fits = isinstance(value, self.type)
        if not fits or (self.one_of and value not in self.one_of):
            return False
        # Written so that NaN fails.
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)


CONSUME_FROM_WHERE = (
    "CONSUME_FROM_LAST_OFFSET",
    "CONSUME_FROM_FIRST_OFFSET",
    "CONSUME_FROM_TIMESTAMP",
)

SETTING_KEYS = {
    key.path: key
    for key in (
        SettingKey("include_retry_topics", bool, "true or false"),
        SettingKey(
            "on_bad_rows",
            str,
            "one of quarantine, fail",
            one_of=("quarantine", "fail"),
        ),
        SettingKey("max_bad_share", float, "a number from 0 to 1", low=0, high=1),
        SettingKey(
            "limits.max_queue_nums",
            int,
            "a whole number from 1 to 2147483647",
            low=1,
            high=2**31 - 1,
        ),
        SettingKey("limits.process_bytes", int, "a whole number of bytes from 0 up", low=0),
        *(
            SettingKey(
                f"generate.{name}",
                int,
                f"a whole number from {RANGES[name][0]} to {RANGES[name][1]}",
                low=RANGES[name][0],
                high=RANGES[name][1],
            )
            for name in ("start_ms", "groups_per_cluster", "offset_hours")
        ),
        SettingKey(
            "spark.shuffle_partitions", int, "a whole number from 1 up", low=1, optional=True
        ),
        SettingKey("assume.strategy", str, "a strategy text, e.g. AVG"),
        SettingKey(
            "assume.consume_from_where",
            str,
            "one of " + ", ".join(CONSUME_FROM_WHERE),
            one_of=CONSUME_FROM_WHERE,
        ),
        SettingKey("assume.client_version", str, "a RocketMQ version, e.g. 5.3"),
        SettingKey("assume.broker_version", str, "a RocketMQ version, e.g. 5.3"),
        SettingKey("assume.time_zone", str, "a time zone, e.g. Asia/Shanghai"),
        SettingKey("audit.stale_after_hours", float, "a number of hours above 0", low=0.01),
        SettingKey(
            "audit.max_age_hours", float, "a number of hours above 0", low=0.01, optional=True
        ),
        SettingKey("audit.findings_per_rule", int, "a whole number from 1 up", low=1),
        SettingKey("audit.timelines", int, "a whole number from 0 to 100", low=0, high=100),
        SettingKey("audit.redact_salt", str, "any text; keep it secret"),
        SettingKey("plan.ownership_groups", int, "a whole number from 0 up", low=0),
        SettingKey("plan.futures", int, "a whole number from 0 up", low=0),
        SettingKey("summary.worst_groups", int, "a whole number from 0 up", low=0),
    )
}


# Settings: the package's defaults, then each --config file in order, then --set, then options.
#
# Every mistake of every place is found before anything runs and named in one error.

SECTIONS = {path.partition(".")[0] for path in SETTING_KEYS if "." in path}


@dataclass(frozen=True)
class Limits:
    """Where a value is absurd rather than large, and where an input is too large for a process."""

    max_queue_nums: int
    process_bytes: int


@dataclass(frozen=True)
class GenerateSettings:
    """What of a synthetic fleet is seldom chosen; see `FleetPlan`."""

    start_ms: int
    groups_per_cluster: int
    offset_hours: int


@dataclass(frozen=True)
class SparkSettings:
    """What a run asks of Spark; None leaves it to Spark's own configuration."""

    shuffle_partitions: int | None = None


@dataclass(frozen=True)
class SummarySettings:
    """What the summary shows."""

    worst_groups: int


@dataclass(frozen=True)
class AssumeSettings:
    """What `ingest` takes where no file of a collection says it."""

    strategy: str
    consume_from_where: str
    client_version: str
    broker_version: str
    time_zone: str


@dataclass(frozen=True)
class AuditSettings:
    """How `audit` judges; ``max_age_hours`` None: the collection may be of any age."""

    stale_after_hours: float
    findings_per_rule: int
    timelines: int
    redact_salt: str
    max_age_hours: float | None = None


@dataclass(frozen=True)
class PlanSettings:
    """Of how many groups `plan` shows the owners of every queue, if none is named.

    The same groups are simulated over time, each in so many futures.
    """

    ownership_groups: int
    futures: int


@dataclass(frozen=True)
class Settings:
    """The resolved settings of one run."""

    include_retry_topics: bool
    on_bad_rows: str
    max_bad_share: float
    limits: Limits
    generate: GenerateSettings
    spark: SparkSettings
    assume: AssumeSettings
    audit: AuditSettings
    plan: PlanSettings
    summary: SummarySettings

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for the record of the run."""
        return asdict(self)


@dataclass(frozen=True)
class _Source:
    """Where values came from, by dotted key."""

    name: str
    values: Mapping[str, Any]


def settings_of(options: JobOptions) -> "Settings":
    """The settings of a run: those of its files, its ``--set`` and its own options."""
    named = {name: getattr(options, name, None) for name in ("on_bad_rows", "max_bad_share")}
    return resolve_settings(options.config, options.set, named)


def resolve_settings(
    config: Sequence[str] = (),
    assignments: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
) -> Settings:
    """Merge all sources; a later one wins.

    Args:
        config: paths of TOML files, in order.
        assignments: ``key=value`` texts of --set, in order.
        options: values of options by dotted key; None means not given, text is read as in --set.

    Raises:
        UsageError: names every unreadable file, unknown key and wrong value, with its place.
    """
    mistakes: list[str] = []
    defaults = resources.files("rebalance_core.cli").joinpath("defaults.toml").read_text("utf-8")
    sources = [_Source("defaults.toml", dict(_flatten(tomllib.loads(defaults))))]
    sources += [_read_file(path, mistakes) for path in config]
    sources += [_read_assignment(text, mistakes) for text in assignments]
    for key, value in (options or {}).items():
        if value is not None:
            read = _toml_value(value) if isinstance(value, str) else value
            sources.append(_Source("--" + key.replace("_", "-"), {key: read}))
    for source in sources:
        mistakes += _mistakes(source)
    if mistakes:
        raise UsageError("\n".join(mistakes))
    merged: dict[str, Any] = {}
    for source in sources:
        merged |= source.values
    return _build(merged)


def _build(values: Mapping[str, Any]) -> Settings:
    def section(name: str) -> dict[str, Any]:
        prefix = name + "."
        return {k.removeprefix(prefix): v for k, v in values.items() if k.startswith(prefix)}

    return Settings(
        include_retry_topics=values["include_retry_topics"],
        on_bad_rows=values["on_bad_rows"],
        max_bad_share=float(values["max_bad_share"]),
        limits=Limits(**section("limits")),
        generate=GenerateSettings(**section("generate")),
        spark=SparkSettings(**section("spark")),
        assume=AssumeSettings(**section("assume")),
        audit=AuditSettings(**section("audit")),
        plan=PlanSettings(**section("plan")),
        summary=SummarySettings(**section("summary")),
    )


def _flatten(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        path = prefix + name
        if isinstance(value, dict) and path not in SETTING_KEYS:
            # An unknown section is one mistake, not one for each of its keys.
            if path in SECTIONS:
                yield from _flatten(value, path + ".")
            else:
                yield path, value
        else:
            yield path, value


def _read_file(path: str, mistakes: list[str]) -> _Source:
    try:
        return _Source(path, dict(_flatten(tomllib.loads(Path(path).read_text("utf-8-sig")))))
    except OSError as error:
        mistakes.append(f"--config {path}: {error.strerror or error}")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        mistakes.append(f"--config {path}: not TOML: {error}")
    return _Source(path, {})


def _read_assignment(text: str, mistakes: list[str]) -> _Source:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        mistakes.append(f"--set {text}: expected KEY=VALUE, e.g. summary.worst_groups=10")
        return _Source("--set", {})
    return _Source("--set", {key.strip(): _toml_value(value.strip())})


def _toml_value(text: str) -> Any:
    """`text` as TOML reads a value; what is none is a string: quotes are a shell's trouble."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _mistakes(source: _Source) -> Iterator[str]:
    for path, value in source.values.items():
        key = SETTING_KEYS.get(path)
        if key is None and path in SECTIONS:
            yield f"{source.name}: {path} = {value!r}: is a section, not a key"
        elif key is None:
            known = list(SETTING_KEYS)
            hint = did_you_mean(path, [*known, *SECTIONS])
            yield f"{source.name}: unknown key {path}{hint} (valid keys: {', '.join(known)})"
        elif not key.accepts(value):
            hint = did_you_mean(str(value), key.one_of)
            yield f"{source.name}: {path} = {value!r}: expected {key.valid}{hint}"


# The section ``[assume]`` of the settings: what ingest takes for granted where no file says it.


def assumptions(settings: Settings) -> "Assumptions":
    """The section, checked.

    Raises:
        UsageError: names every value that is wrong.
    """
    from rebalance_core.ingest.collection_settings import Assumptions
    from rebalance_core.ingest.parse.log_lines import known_zone
    from rebalance_core.strategies import parse_strategy

    given = settings.assume
    mistakes = []
    for name, check in (
        ("strategy", parse_strategy),
        ("client_version", parse_version),
        ("broker_version", parse_version),
    ):
        try:
            check(getattr(given, name))
        except RebalanceError as error:
            mistakes.append(f"assume.{name}: {error}")
    if not known_zone(given.time_zone):
        mistakes.append(f"assume.time_zone = {given.time_zone!r} is no time zone")
    if mistakes:
        raise UsageError("\n".join(mistakes))
    return Assumptions(**asdict(given))


# What the engine gets of a run's settings.


def simulation_options(settings: Settings) -> SimulationOptions:
    """All groups, over the whole time, under their own strategies."""
    return SimulationOptions(
        include_retry_topics=settings.include_retry_topics,
        max_queue_nums=settings.limits.max_queue_nums,
    )


def bad_row_limits(settings: Settings) -> BadRowLimits:
    """How many bad rows an input may have."""
    return BadRowLimits(settings.on_bad_rows, settings.max_bad_share)


def ledger_config(settings: Settings) -> LedgerConfig:
    """How a ledger is written."""
    return LedgerConfig(bad_row_limits(settings), settings.summary.worst_groups)
