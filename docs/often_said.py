"""What docs/often-said.md shows: `python docs/often_said.py SECTION` prints its numbered lines.

The section `retry` reads the folder that `rebalance demo` writes.
"""

import sys
from dataclasses import replace

import pyarrow.dataset as ds

from rebalance_core import MessageQueue, allocate_group, parse_strategy, rebalance_pass, what_if
from rebalance_core.client.broker_answers import BrokerRefusedError, QueueAnswers
from rebalance_core.client.process import ProcessQueue
from rebalance_core.model import events
from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.model.versions import parse_version
from rebalance_core.planning import set_request_mode
from rebalance_core.producers.profile import not_available_ms, profile_of
from rebalance_core.protocol.broker_offset_reply import broker_offset_reply
from rebalance_core.protocol.first_pull import first_pull_correction
from rebalance_core.protocol.settling_windows import window_ms
from rebalance_core.protocol.timestamp_search import timestamp_search_bounds
from rebalance_core.timing.reference.pass_clock import PassClock

DEMO = sys.argv[2] if len(sys.argv) > 2 else "rebalance-demo"
OLD, NEW = GroupSettings(client_version="4.9.7"), GroupSettings(client_version="5.3.3")
TWO = {"orders": [("broker-a", 0), ("broker-a", 1)]}
ONE = {"orders": [("broker-a", 0)]}


def one_pass(settings=NEW, queues=TWO, members=("a@1",), **more):
    """Return what one pass of the client `a@1` does."""
    return rebalance_pass("a@1", queues=queues, members=members, settings=settings, **more).facts()


def shares(strategy, brokers, members):
    """Return the owners of two queues on each broker."""
    queues = [MessageQueue("T", broker, n) for broker in brokers for n in (0, 1)]
    owners = allocate_group(parse_strategy(strategy), queues, members)
    return {f"{queue.broker_name}:{queue.queue_id}": names for queue, names in owners.items()}


def passes():
    """When a pass runs."""
    for settings in (OLD, NEW):  # another holds a lock; None: 4.9 does not ask
        done = one_pass(replace(settings, ordered=True), locks={"orders/broker-a/0": "b@1"})
        clock = PassClock(10_000_000, 1_000_000, 0, 20_000_000)  # a pass ended at second 10
        if done["balanced"] is False:
            clock.unbalanced()
        print(
            "1:", settings.client_version, "balanced", done["balanced"], "next", clock.next_us / 1e6
        )

    for minimum in (0, 1_000_000):  # µs; before 5.2, and since
        clock = PassClock(10_000_000, minimum, 0, 20_000_000)  # a pass ended at second 10
        clock.wake(10_200_000)
        print("2: woken at 10.2 s, passes at", clock.next_us / 1e6)

    for detail in ("CLOSED", "EXPIRED"):
        lost = events.Event(0, 0, events.CONSUMER_LOST, detail=detail)
        print("3:", detail, "all have passed after", window_ms(lost), "ms")


def views():
    """Who divides, and what they see."""
    reads = {"a@1": ["orders"], "b@1": ["stock"]}
    both = {"orders": {"broker-a": 2}, "stock": {"broker-b": 2}}
    owners = what_if(reads, both, "AVG", {}).before.owners
    print("5:", {f"{queue.topic}:{queue.queue_id}": names for queue, names in owners.items()})

    for client, members in ("a@1", ["a@1", "b@1"]), ("b@1", ["b@1"]):  # answers of two brokers
        done = rebalance_pass(client, queues=TWO, members=members)
        print("6:", client, "takes", sorted(done.facts()["added"]))

    broadcasting = replace(NEW, message_model="BROADCASTING")
    print("9:", one_pass(broadcasting, members=None, table={"orders/broker-a/0": 5})["added"])


def retry():
    """Where retry topics lie."""
    owned = ds.dataset(f"{DEMO}/audit/ownership", format="parquet").to_table().to_pylist()
    for group in ("order-service", "search"):  # retry queues: on brokers that got a heartbeat
        print(
            "10:",
            group,
            sorted({row["broker_name"] for row in owned if row["topic"] == f"%RETRY%{group}"}),
        )


def strategies():
    """Strategies."""
    print("11:", shares("MACHINE_ROOM(consumer_idcs=r1)", ["r1@a", "r2@b"], ["r1-c1", "r2-c1"]))
    nearby = "MACHINE_ROOM_NEARBY-AVG(room_separator=-)"
    print("12:", shares(nearby, ["r1-b", "r2-b", "r3-b"], ["r1-c1", "r3-c1"]))


def changes():
    """What a pass changes."""
    ordered = replace(NEW, ordered=True)
    done = one_pass(ordered, locks={"orders/broker-a/0": "b@1"})
    print("13:", [row["queue"] for row in done["table"]])

    silent = {"orders/broker-a/0": ProcessQueue(5)}  # no messages, and the broker is down
    print("14:", one_pass(queues=ONE, table=silent, brokers_down=["broker-a"])["removed"])
    expired = {"orders/broker-a/0": ProcessQueue(5, pull_expired=True)}
    done = one_pass(queues=ONE, table=expired)
    print("14:", done["removed"], done["added"])

    busy = {"orders/broker-a/1": ProcessQueue(5, holds_messages=True, listener_busy=True)}
    for settings in (OLD, NEW):
        done = one_pass(replace(settings, ordered=True), queues=ONE, table=busy)
        print("15:", [step["text"] for step in done["steps"] if "1" in step["queue"]][1:])

    lite = replace(NEW, consumer_type="LITE_PULL")
    done = one_pass(lite, queues=ONE, table={"orders/broker-a/1": 5, "old/broker-a/0": 7})
    reported = [step["text"] for step in done["steps"] if step["method"] == "messageQueueChanged"]
    print("16:", done["persisted"], reported)
    print("17:", [step["text"] for step in done["steps"] if "old/" in step["queue"]])

    for settings in (OLD, NEW):
        steps = one_pass(settings)["steps"]
        sent = [step["text"] for step in steps if step["method"] == "dispatchPullRequest"]
        print("19:", settings.client_version, sent)

    four = TWO | {"x": [("broker-a", 0)], "%RETRY%g": [("broker-a", 0)]}
    held = {"x/broker-a/0": 0, "%RETRY%g/broker-a/0": 0}
    topic = replace(NEW, pull_threshold_for_topic=1000, pull_threshold_for_queue=100)
    done = one_pass(topic, queues=four, table=held)
    print("20: 1000 //", len(done["table"]), "=", done["pull_threshold_for_queue"])
    print("21:", topic.pull_threshold_for_queue, "becomes", done["pull_threshold_for_queue"])


def pop():
    """Queues that members pop."""
    pops = set_request_mode("orders", "POP(share_queue_num=1)", rebalance_mode="BROKER")
    result = what_if(["10.0.0.1@1#1", "10.0.0.2@1#1"], {"orders": {"broker-a": 4}}, "AVG", pops)
    print("18: clients per queue:", result.after.pop["orders"].min_clients_per_queue)


def starts():
    """Where a new owner starts."""
    stored = {"orders/broker-a/0": (17, 99, None)}
    done = one_pass(queues=ONE, memory={"orders/broker-a/0": 90}, offsets=stored)
    print("22:", done["added"])

    busy = QueueAnswers(None, 99, None, query_failure=BrokerRefusedError)
    for settings in (OLD, NEW):
        done = one_pass(settings, queues=ONE, offsets={"orders/broker-a/0": busy})
        print("23:", settings.client_version, done["added"])

    empty = {"committed_offset": None, "min_offset": 0, "max_offset": 0, "head_cached": None}
    for version in ("5.0.0", "5.1.0"):
        print(
            "24:",
            version,
            broker_offset_reply(**empty, set_zero_if_not_found=True, version=version),
        )

    first = replace(NEW, consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    done = one_pass(first, queues=ONE, offsets={"orders/broker-a/0": (None, 900, None)})
    moved = first_pull_correction(offset=0, min_offset=400, max_offset=900, version="5.3.3")
    print("25:", done["added"], "and the first pull is sent to", moved)

    for version in ("5.1.0", "5.1.1"):  # 40 messages, all stored before the timestamp
        seen = [(1_000, 0, 40), (2_000, 0, 40)]
        print(
            "27:", version, timestamp_search_bounds(seen, 1_500, searched_ms=2_000, version=version)
        )

    for version in ("4.9.7", "4.9.8", "5.1.4", "5.2.0"):
        client = GroupSettings(client_version=version, message_model="BROADCASTING")
        held = {"orders/broker-a/0": 5, "orders/broker-a/1": 7}
        done = rebalance_pass("a@1", queues=ONE, members=None, table=held, settings=client)
        print("28:", version, "in memory:", len(done.process.store.in_memory()))


def producers():
    """Producers."""
    for version in ("5.1.3", "5.1.4"):
        profile = profile_of(parse_version(version))
        print("29:", version, [not_available_ms(latency, profile) for latency in (550, 1000, 1800)])


def pulls():
    """Pulls, locks, empty lists."""
    working = {"orders/broker-a/1": ProcessQueue(5, holds_messages=True, listener_busy=True)}
    for settings in (OLD, NEW):
        done = one_pass(settings, queues=ONE, table=working)
        print("31:", [step["text"] for step in done["steps"] if "1" in step["queue"]])

    for version in ("5.4.0", "5.5.0"):  # members: null, empty
        client = GroupSettings(client_version=version)
        balanced = [one_pass(client, members=members)["balanced"] for members in (None, [])]
        print("32:", version, "balanced:", balanced)


SECTIONS = {
    section.__name__: section
    for section in (passes, views, retry, strategies, changes, pop, starts, producers, pulls)
}

if __name__ == "__main__":
    SECTIONS[sys.argv[1]]()
