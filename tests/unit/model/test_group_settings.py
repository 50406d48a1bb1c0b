"""The defaults of a group without a row are those of RocketMQ's consumers, and of the contract."""

import re
from dataclasses import asdict, fields

import pytest

from rebalance_core.contracts.inputs import CONSUMER_GROUPS
from rebalance_core.model.group_settings import GroupSettings
from tests.unit.kernels.fleets import kernel_tables
from tests.unit.replay.histories import Tables, history, join, ledger, topic

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
