"""Settings of a group, and the text of its request mode."""

import re
from dataclasses import asdict, fields

import pytest

from rebalance_core.contracts.inputs import CONSUMER_GROUPS
from rebalance_core.model.errors import UsageError
from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.model.queue import pop_retry_topics
from rebalance_core.model.request_mode import can_be_popped, parse_request_mode
from tests.unit.kernels.fleets import kernel_tables
from tests.unit.replay.histories import Tables, history, join, ledger, topic

# The defaults of a group without a row are those of RocketMQ's consumers, and of the contract.

DEFAULTS = {
    "consumer_type": "PUSH",
    "message_model": "CLUSTERING",
    "strategy": "AVG",
    "subscriptions": None,
    "consume_from_where": "CONSUME_FROM_LAST_OFFSET",
    "consume_timestamp_ms": None,
    "ordered": False,
    "client_version": "5.3",
    "broker_version": "5.3",
    "rebalance_mode": "CLIENT",
    # DefaultMQPushConsumer
    "pull_threshold_for_queue": 1000,
    "pull_threshold_size_for_queue": 100,
    "pull_threshold_for_topic": -1,
    "pull_threshold_size_for_topic": -1,
    "notified": True,
    # RebalanceService, ClientConfig
    "wait_interval_ms": 20_000,
    "min_interval_ms": 1_000,
    "poll_name_server_interval_ms": 30_000,
    "heartbeat_broker_interval_ms": 30_000,
    "persist_consumer_offset_interval_ms": 5_000,
}


def test_every_setting_has_its_default() -> None:
    assert asdict(GroupSettings()) == DEFAULTS


@pytest.mark.parametrize("name", [f.name for f in fields(GroupSettings)])
def test_the_contract_names_the_default(name: str) -> None:
    (meaning,) = (c.meaning for c in CONSUMER_GROUPS.columns if c.name == name)
    named = re.findall(r"default ([^ ;]+)", meaning)
    default = DEFAULTS[name]
    expected = [] if default is None else [str(default).lower()]
    assert [word.lower() for word in named] == expected


def thresholds(tables: Tables) -> list[tuple[int, int]]:
    return [
        (row["pull_threshold_for_queue"], row["pull_threshold_size_for_queue"])
        for row in tables["consumer_load"]
    ]


def test_by_default_each_queue_has_thresholds_of_its_own() -> None:
    given = history(topic(0, 3), join(1, "x"))
    assert thresholds(ledger(given)) == [(1000, 100)]
    kernels, reasons = kernel_tables([given])
    assert reasons == {("c", "g"): "REGULAR"}
    assert thresholds(kernels) == [(1000, 100)]


# The text of a request mode.


@pytest.mark.parametrize("text", ["PULL", "POP(share_queue_num=0)", "POP(share_queue_num=-1)"])
def test_texts_round_trip(text: str) -> None:
    assert str(parse_request_mode(text)) == text


def test_what_is_popped() -> None:
    assert parse_request_mode("POP(share_queue_num=2)").share_queue_num == 2
    assert not parse_request_mode("PULL").is_pop
    assert can_be_popped("T")
    assert not can_be_popped("%RETRY%g")


@pytest.mark.parametrize(
    "text",
    ["", "POP", "pull", "POP()", "POP(share_queue_num=)", "POP(share_queue_num=x)",
     "POP(share_queue_num=2147483648)", "POP(share_queue_num=1) ", "OBSERVED"],
)  # fmt: skip
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a request mode; valid: PULL, POP"):
        parse_request_mode(text)


def test_retry_topics_of_pop_are_told_from_the_group_s() -> None:
    assert pop_retry_topics("g", "T") == ("%RETRY%g_T", "%RETRY%g+T")
