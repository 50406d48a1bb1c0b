"""Settings: the package's defaults, then each --config file in order, then --set, then options."""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from importlib import resources
from math import inf
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, get_args

from rebalance_core.checks.row_limits import BadRowLimits
from rebalance_core.cli.options import JobOptions
from rebalance_core.contracts.settings_file import read_settings_text, toml_document, toml_value
from rebalance_core.engine.options import LedgerConfig, SimulationOptions
from rebalance_core.model.errors import RebalanceError, UsageError, did_you_mean, unknown_keys
from rebalance_core.model.versions import parse_version
from rebalance_core.strategies.custom import PLUGIN_KINDS
from rebalance_core.strategies.plugin_modules import ALLOW_VARIABLE
from rebalance_core.strategies.registry import register_plugins
from rebalance_core.synthetic.fleet import RANGES

if TYPE_CHECKING:
    from rebalance_core.ingest.assumptions import Assumptions


# Every key in a configuration file is a field of its section, with a type, a range and a
# description of the valid values.
@dataclass(frozen=True)
class SettingKey:
    """The valid values of a key, in addition to the type of its field; no range contains NaN."""

    valid: str
    low: float = -inf
    high: float = inf
    one_of: tuple[str, ...] = ()

    def accepts(self, value: Any, kind: Any) -> bool:
        """Return True if `value`, as TOML parses it, has the type and lies in the range."""
        if kind is bool or isinstance(value, bool):
            return kind is bool and isinstance(value, bool)
        if kind is str:
            return isinstance(value, str) and (not self.one_of or value in self.one_of)
        fits = isinstance(value, int) or (kind is float and isinstance(value, float))
        return fits and self.low <= value <= self.high


def _key(valid: str, low: float = -inf, high: float = inf, **default: Any) -> Any:
    return field(metadata={"key": SettingKey(valid, low, high)}, **default)


def _one_of(*words: str) -> Any:
    return field(metadata={"key": SettingKey("one of " + ", ".join(words), one_of=words)})


def _of_fleet(name: str) -> Any:
    low, high = RANGES[name]
    return _key(f"a whole number from {low} to {high}", low, high)


@dataclass(frozen=True)
class Limits:
    """Limits beyond which a value is absurd, or an input is too large for one process."""

    max_queue_nums: int = _key("a whole number from 1 to 2147483647", 1, 2**31 - 1)
    process_bytes: int = _key("a whole number of bytes, at least 0", 0)


@dataclass(frozen=True)
class GenerateSettings:
    """Rarely used settings for a synthetic fleet; see `FleetPlan`."""

    start_ms: int = _of_fleet("start_ms")
    groups_per_cluster: int = _of_fleet("groups_per_cluster")
    offset_hours: int = _of_fleet("offset_hours")


@dataclass(frozen=True)
class SparkSettings:
    """Settings of Spark; None leaves them to Spark's own configuration."""

    shuffle_partitions: int | None = _key("a whole number, at least 1", 1, default=None)


@dataclass(frozen=True)
class SummarySettings:
    """Settings of summaries."""

    worst_groups: int = _key("a whole number, at least 0", 0)


@dataclass(frozen=True)
class AssumeSettings:
    """Assumptions that `ingest` makes where the collection has no evidence."""

    strategy: str = _key("a strategy text, e.g. AVG")
    consume_from_where: str = _one_of(
        "CONSUME_FROM_LAST_OFFSET", "CONSUME_FROM_FIRST_OFFSET", "CONSUME_FROM_TIMESTAMP"
    )
    client_version: str = _key("a RocketMQ version, e.g. 5.3")
    broker_version: str = _key("a RocketMQ version, e.g. 5.3")
    time_zone: str = _key("a time zone, e.g. Asia/Shanghai")


@dataclass(frozen=True)
class AuditSettings:
    """Settings for how `audit` judges and for the links on its page.

    If ``max_age_hours`` is None, the collection may have any age; if ``rules_url`` is None, the
    page has no links.
    """

    stale_after_hours: float = _key("a number of hours above 0", 0.01)
    findings_per_rule: int = _key("a whole number, at least 1", 1)
    timelines: int = _key("a whole number from 0 to 100", 0, 100)
    redact_salt: str = _key("a text that you keep secret")
    max_age_hours: float | None = _key("a number of hours above 0", 0.01, default=None)
    rules_url: str | None = _key("the URL of a folder with one page per rule", default=None)


@dataclass(frozen=True)
class PlanSettings:
    """Settings of `plan`: the number of groups for which it shows the owners of every queue if none
    is named.

    The same groups are simulated over time, each in this many futures.
    """

    ownership_groups: int = _key("a whole number, at least 0", 0)
    futures: int = _key("a whole number, at least 0", 0)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The resolved settings of one run."""

    include_retry_topics: bool = _key("true or false")
    on_bad_rows: str = _one_of("quarantine", "fail")
    max_bad_share: float = _key("a number from 0 to 1", 0, 1)
    limits: Limits
    generate: GenerateSettings
    spark: SparkSettings
    assume: AssumeSettings
    audit: AuditSettings
    plan: PlanSettings
    summary: SummarySettings
    strategies: Mapping[str, str]
    hash_functions: Mapping[str, str]
    room_resolvers: Mapping[str, str]
    """Plugins by name, each ``module:attribute``."""

    def as_dict(self) -> dict[str, Any]:
        """Return the settings as plain values, for the record of the run."""
        return asdict(self)


SECTIONS: dict[str, Any] = {
    field.name: field.type for field in fields(Settings) if is_dataclass(field.type)
}
SETTING_KEYS = {
    f"{prefix}{field.name}": field
    for prefix, section in (
        ("", Settings),
        *((f"{name}.", kind) for name, kind in SECTIONS.items()),
    )
    for field in fields(section)
    if "key" in field.metadata
}
"""The fields by dotted path, as in `--set`; a field with a default may be absent from all sources.
"""
PLUGIN_FORM = "module:attribute, e.g. acme.rebalance:Grey"
"""The form of values in the sections of `PLUGIN_KINDS`, whose keys are names of plugins."""


# Settings: the package's defaults, then each --config file in order, then --set, then options.
#
# All mistakes in all sources are found before a run and reported in one error.
_Source = tuple[str, Mapping[str, Any]]
"""The name of a source, and its values by dotted key."""


def settings_of(options: JobOptions) -> "Settings":
    """Return a run's settings, from its files, ``--set`` and options."""
    named = {name: getattr(options, name, None) for name in ("on_bad_rows", "max_bad_share")}
    return resolve_settings(options.config, options.set, named)


def resolve_settings(
    config: Sequence[str] = (),
    assignments: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
) -> Settings:
    """Merge all sources; a later source wins.

    Args:
        config: paths of TOML files, in order.
        assignments: ``key=value`` strings from --set, in order.
        options: values of options by dotted key; None means not given, and text is read as in
            --set.

    Raises:
        UsageError: the settings are invalid; the message names every unreadable file, unknown key
            and wrong value, with its source.
    """
    mistakes: list[str] = []
    defaults = resources.files("rebalance_core.cli").joinpath("defaults.toml").read_text("utf-8")
    sources: list[_Source] = [
        ("defaults.toml", dict(flatten(toml_document(defaults, "defaults.toml"))))
    ]
    sources += [_read_file(path, mistakes) for path in config]
    sources += [_read_assignment(text, mistakes) for text in assignments]
    for key, value in (options or {}).items():
        if value is not None:
            read = toml_value(value) if isinstance(value, str) else value
            sources.append(("--" + key.replace("_", "-"), {key: read}))
    for source in sources:
        mistakes += _mistakes(*source)
    if mistakes:
        raise UsageError("\n".join(mistakes))
    merged: dict[str, Any] = {}
    for _, values in sources:
        merged |= values
    return _build(merged)


def _build(values: Mapping[str, Any]) -> Settings:
    by_section: dict[str, Any] = {}
    for path, value in values.items():
        if path.partition(".")[0] in PLUGIN_KINDS:
            continue
        section, _, name = path.rpartition(".")
        (by_section.setdefault(section, {}) if section else by_section)[name] = value
    sections = {name: kind(**by_section.get(name, {})) for name, kind in SECTIONS.items()}
    sections |= {kind: {} for kind in PLUGIN_KINDS} | _plugins_by_kind(values)
    return Settings(**by_section | sections | {"max_bad_share": float(by_section["max_bad_share"])})


def _plugins_by_kind(values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the plugins in dotted paths by kind; their names may also contain dots."""
    by_kind: dict[str, dict[str, Any]] = {}
    for path, value in values.items():
        kind, _, name = path.partition(".")
        if kind in PLUGIN_KINDS:
            by_kind.setdefault(kind, {})[name] = value
    return by_kind


def allowed_packages(named: Sequence[str]) -> tuple[str, ...]:
    """Return the packages that may contain plugins: those in ``named`` and in the environment
    variable.
    """
    return (*named, *os.environ.get(ALLOW_VARIABLE, "").replace(",", " ").split())


def add_plugins(
    config: Sequence[str], assignments: Sequence[str], allowed: Collection[str]
) -> None:
    """Register the plugins that files and ``--set`` name; other mistakes in them are reported
    later.

    Args:
        config: paths of TOML files, in order.
        assignments: ``key=value`` strings from --set, in order.
        allowed: packages that may contain plugins.

    Raises:
        UsageError: plugins are not allowed or cannot be used; the message names each with the
            reason.
    """
    merged: dict[str, Any] = {}
    ignored: list[str] = []
    for source in (
        *(_read_file(path, ignored) for path in config),
        *(_read_assignment(text, ignored) for text in assignments),
    ):
        if not any(_mistakes(*source)):
            merged |= source[1]
    register_plugins(
        (
            (kind, name, text)
            for kind, plugins in _plugins_by_kind(merged).items()
            for name, text in plugins.items()
        ),
        allowed,
    )


def flatten(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of a configuration by dotted path."""
    for name, value in table.items():
        path = prefix + name
        if isinstance(value, dict) and path not in SETTING_KEYS:
            # An unknown section is one mistake, not one per key.
            if path in SECTIONS or path.partition(".")[0] in PLUGIN_KINDS:
                yield from flatten(value, path + ".")
            else:
                yield path, value
        else:
            yield path, value


def _read_file(path: str, mistakes: list[str]) -> _Source:
    try:
        return path, dict(flatten(toml_document(read_settings_text(Path(path)), path)))
    except FileNotFoundError as error:
        mistakes.append(f"--config {path}: {error.strerror}")
    except UsageError as error:
        mistakes.append(f"--config {error}")
    return path, {}


def _read_assignment(text: str, mistakes: list[str]) -> _Source:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        mistakes.append(f"--set {text}: expected KEY=VALUE, e.g. summary.worst_groups=10")
        return "--set", {}
    return "--set", {key.strip(): toml_value(value.strip())}


def _mistakes(source: str, values: Mapping[str, Any]) -> Iterator[str]:
    unknown = unknown_keys(
        (path for path in values if not _is_known(path)),
        SETTING_KEYS,
        near=(*SECTIONS, *PLUGIN_KINDS),
    )
    yield from (f"{source}: {text}" for _, text in unknown)
    for path, value in values.items():
        key = SETTING_KEYS.get(path)
        kind, _, name = path.partition(".")
        if kind in PLUGIN_KINDS and name:
            if not isinstance(value, str):
                yield f"{source}: {path} = {value!r:.200}: expected {PLUGIN_FORM}"
        elif key is None and (path in SECTIONS or kind in PLUGIN_KINDS):
            yield f"{source}: {path} = {value!r:.200}: is a section, not a setting"
        elif key is not None and not key.metadata["key"].accepts(value, _plain(key.type)):
            setting: SettingKey = key.metadata["key"]
            hint = did_you_mean(str(value), setting.one_of)
            yield f"{source}: {path} = {value!r:.200}: expected {setting.valid}{hint}"


def _is_known(path: str) -> bool:
    return path in SETTING_KEYS or path in SECTIONS or path.partition(".")[0] in PLUGIN_KINDS


def _plain(kind: Any) -> Any:
    """Return the type without None."""
    return next((member for member in get_args(kind) if member is not NoneType), kind)


def assumptions(settings: Settings) -> "Assumptions":
    """Return the checked assumptions.

    Raises:
        UsageError: values are wrong; the message names each.
    """
    from rebalance_core.ingest.assumptions import Assumptions
    from rebalance_core.ingest.parse.zones import known_zone
    from rebalance_core.strategies import parse_strategy

    section = settings.assume
    mistakes = []
    for name, check in (
        ("strategy", parse_strategy),
        ("client_version", parse_version),
        ("broker_version", parse_version),
    ):
        try:
            check(getattr(section, name))
        except RebalanceError as error:
            mistakes.append(f"assume.{name}: {error}")
    if not known_zone(section.time_zone):
        mistakes.append(f"assume.time_zone = {section.time_zone!r} is not a time zone")
    if mistakes:
        raise UsageError("\n".join(mistakes))
    return Assumptions(**asdict(section))


def simulation_options(settings: Settings) -> SimulationOptions:
    """Return the options to simulate all groups over all time under their own strategies."""
    return SimulationOptions(
        include_retry_topics=settings.include_retry_topics,
        max_queue_nums=settings.limits.max_queue_nums,
    )


def bad_row_limits(settings: Settings) -> BadRowLimits:
    """Return how many bad rows an input may have."""
    return BadRowLimits(settings.on_bad_rows, settings.max_bad_share)


def ledger_config(settings: Settings) -> LedgerConfig:
    """Return the settings for writing a ledger."""
    return LedgerConfig(bad_row_limits(settings), settings.summary.worst_groups)
