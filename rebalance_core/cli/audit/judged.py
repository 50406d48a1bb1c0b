"""The night as the settings and options of `audit` have it judged."""

from datetime import datetime
from typing import TYPE_CHECKING

from rebalance_core.audit.accepted import Acceptance
from rebalance_core.cli.audit.options import AuditOptions
from rebalance_core.cli.settings.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from rebalance_core.spark.audit.audit import AuditResult


HOUR_MS = 3_600_000


def judged_night(
    settings: Settings,
    tables: "dict[str, DataFrame]",
    accepted: tuple[Acceptance, ...],
    options: AuditOptions,
    now: datetime,
) -> "AuditResult":
    """`audit_tables` of the tables."""
    from rebalance_core.spark.audit.audit import audit_tables

    hours = settings.audit.max_age_hours
    now_ms = int(now.timestamp() * 1000)
    return audit_tables(
        tables,
        accepted=accepted,
        stale_hours=settings.audit.stale_after_hours,
        not_before_ms=None if hours is None else now_ms - int(hours * HOUR_MS),
        redact_salt=settings.audit.redact_salt if options.redact_clients else None,
    )
