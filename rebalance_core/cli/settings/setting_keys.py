"""Every key of a configuration file, once: its type, its range and what is valid in words."""

from dataclasses import dataclass
from typing import Any

from rebalance_core.synthetic.fleet import RANGES


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
