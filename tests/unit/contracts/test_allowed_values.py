"""Columns with a fixed set of words take it from the model."""

import pytest

from rebalance_core.contracts import ALL_TABLES
from rebalance_core.model import group_settings, verdicts

ALLOWED = {
    ("findings", "severity"): verdicts.SEVERITIES,
    ("group_verdicts", "verdict"): tuple(verdicts.VERDICTS),
    ("epochs", "status"): verdicts.EPOCH_STATUSES,
    ("plan_steps", "status"): verdicts.EPOCH_STATUSES,
    ("pull_starts", "status"): verdicts.START_STATUSES,
    ("memberships", "message_model"): group_settings.MESSAGE_MODELS,
    ("consumer_groups", "consumer_type"): group_settings.CONSUMER_TYPES,
    ("consumer_groups", "rebalance_mode"): group_settings.REBALANCE_MODES,
}


@pytest.mark.parametrize(("table", "column"), ALLOWED)
def test_the_allowed_values_are_those_of_the_model(table: str, column: str) -> None:
    assert ALL_TABLES[table].column(column).allowed == ALLOWED[table, column]


def test_the_meaning_names_every_allowed_value() -> None:
    for table, column in (("findings", "severity"), ("group_verdicts", "verdict")):
        declared = ALL_TABLES[table].column(column)
        assert all(word in declared.meaning for word in declared.allowed)
