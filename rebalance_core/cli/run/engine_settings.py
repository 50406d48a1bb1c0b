"""What the engine gets of a run's settings."""

from rebalance_core.checks.row_limits import BadRowLimits
from rebalance_core.cli.settings.settings import Settings
from rebalance_core.engine.options import LedgerConfig, SimulationOptions


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
