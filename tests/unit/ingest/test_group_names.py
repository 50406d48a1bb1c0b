"""Facts of logs under another name of their group."""

import pytest

from rebalance_core.ingest.group_names import renamed

NAMES = {"g1": "orders"}


@pytest.mark.parametrize(
    ("value", "other"),
    [
        ("g1", "orders"),
        ("g10", "g10"),
        ("%RETRY%g1", "%RETRY%orders"),
        ("%RETRY%g1_TopicA", "%RETRY%orders_TopicA"),
        ("%RETRY%g1+TopicA", "%RETRY%orders+TopicA"),
        ("%RETRY%g10", "%RETRY%g10"),
        ([("g1", 3), None], [("orders", 3), None]),
        ({"%RETRY%g1": {"g1"}}, {"%RETRY%orders": {"orders"}}),
    ],
)
def test_groups_and_their_retry_topics_have_the_other_name(value: object, other: object) -> None:
    assert renamed(value, NAMES) == other
