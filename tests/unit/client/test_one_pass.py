"""One pass out of plain values, step by step in the order of the code."""

import json

import pytest

import rebalance_core
from rebalance_core.client.broker_answers import BrokerUnreachableError, QueueAnswers
from rebalance_core.client.one_pass import RebalancePass, rebalance_pass
from rebalance_core.client.process import ProcessQueue
from rebalance_core.model.errors import UsageError
from rebalance_core.model.group_settings import GroupSettings

QUEUES = {"T": [("x", 0), ("x", 1), ("x", 2)]}
ORDERLY = GroupSettings(ordered=True)


def methods(done: RebalancePass) -> list[tuple[str, str]]:
    return [(step.method, step.what) for step in done.steps]


def test_a_pass_drops_then_adds_then_sends_notices() -> None:
    settings = GroupSettings(pull_threshold_for_topic=10)
    done = rebalance_pass(
        "b", queues=QUEUES, members=["b", "a"], table={"T/x/0": 7, "T/x/2": 1, "U/x/0": 3},
        offsets={"T/x/0": (5, 9, None), "T/x/1": (4, 9, None)}, settings=settings, at_ms=77,
    )  # fmt: skip
    assert methods(done) == [
        ("rebalanceByTopic", "sorted"),
        ("rebalanceByTopic", "allocated"),
        ("updateProcessQueueTableInRebalance", "not mine"),
        ("removeUnnecessaryMessageQueue", "persisted"),
        ("updateProcessQueueTableInRebalance", "removed"),
        ("messageQueueChanged", "push"),
        ("truncateMessageQueueNotMyTopic", "truncated"),
        ("doRebalance", "end"),
    ]
    facts = done.facts()
    assert json.loads(json.dumps(facts)) == facts
    assert (facts["removed"], facts["persisted"]) == (["T/x/0"], {"T/x/0": 7})
    assert (facts["truncated"], facts["sub_versions"]) == (["U/x/0"], {"T": 77})
    # two process queues are left when thresholds are shared, that of U among them
    assert (facts["pull_threshold_for_queue"], facts["heartbeats"]) == (5, 1)
    assert facts["table"] == [{"queue": "T/x/2", "offset": 1, "dropped": False}]
    assert "drop T/x/0: it is not in mqSet" in str(done)


def test_in_5_all_are_marked_before_any_is_removed() -> None:
    def order(version: str) -> list[str]:
        done = rebalance_pass(
            "c",
            queues=QUEUES,
            members=["c", "d"],
            table={"T/y/0": 0, "T/y/1": 0},
            settings=GroupSettings(client_version=version),
        )
        return [step.what for step in done.steps if step.what in ("not mine", "removed")]

    assert order("5.3") == ["not mine", "not mine", "removed", "removed"]
    assert order("4.9") == ["not mine", "removed", "not mine", "removed"]


def test_a_refused_lock_asks_for_another_pass_and_offsets_have_their_rule() -> None:
    done = rebalance_pass(
        "a", queues=QUEUES, members=["a"], settings=ORDERLY, locks={"T/x/1": "b"},
        offsets={"T/x/0": 4, "T/x/1": 4, "T/x/2": QueueAnswers(None, 8, None)},
    )  # fmt: skip
    rules = {step.queue: step.values["rule"] for step in done.steps if step.what == "start"}
    assert {queue.queue_id: rule for queue, rule in rules.items() if queue} == {
        0: "STORED",
        2: "MAX_OFFSET",
    }
    facts = done.facts()
    assert facts["locks"] == {"T/x/0": True, "T/x/1": False, "T/x/2": True}
    assert (facts["rebalance_later_ms"], facts["balanced"]) == ([500], False)
    assert facts["first_pull_delay_ms"] == 500


def test_a_busy_listener_leaves_a_zombie_and_an_unreachable_broker_no_start() -> None:
    busy = {"T/y/0": ProcessQueue(3, listener_busy=True)}
    gone = QueueAnswers(None, None, None, BrokerUnreachableError)
    done = rebalance_pass(
        "a",
        queues={"T": [("x", 0)]},
        members=["a"],
        settings=ORDERLY,
        table=busy,
        offsets={"T/x/0": gone, "T/y/0": 3},
    )
    whats = [what for _, what in methods(done)]
    assert whats[2:7] == ["not mine", "persisted", "busy", "zombie", "locked"]
    assert "no start" in whats
    assert not busy["T/y/0"].dropped  # what was handed over stays as it was


@pytest.mark.parametrize(
    ("queues", "members", "what"),
    [({"T": None}, ["a"], "no route"), ({"T": [("x", 0)]}, None, "no members"),
     ({"T": []}, ["a"], "threw")],
)  # fmt: skip
def test_what_is_not_known_leaves_the_table_alone(
    queues: dict[str, list[tuple[str, int]] | None], members: list[str] | None, what: str
) -> None:
    done = rebalance_core.rebalance_pass("a", queues=queues, members=members, table={"T/x/0": 1})
    assert what in [step.what for step in done.steps]
    assert not done.record.removed


def test_a_wrong_queue_is_named() -> None:
    with pytest.raises(UsageError, match=r"'T/x' is not a queue; valid: TOPIC/BROKER/ID"):
        rebalance_pass("a", queues=QUEUES, members=["a"], table={"T/x": 1})
