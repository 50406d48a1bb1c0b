"""Every rule finds what happened, with when, or how something is, and sees a newer fact end it.

A trouble is stated twice: as it was, and with what was seen later added. Nothing that was there
goes, so that a rule fed by old lines of a log has to look at the newer ones to fall silent, or to
be for information.
"""

from dataclasses import dataclass, field
from typing import Any

import pytest

from rebalance_core.audit.group_snapshot import GroupSnapshot, Rule
from rebalance_core.audit.rules import RULES
from rebalance_core.model import events as kinds
from rebalance_core.model.events import EXPIRED, Event
from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.model.verdicts import INFO
from tests.unit.audit.sharing import BROKER, PROXY, listed_by, mode
from tests.unit.audit.snapshots import (
    Row,
    commit,
    end,
    event,
    fact,
    findings_of,
    join,
    leave,
    listed_at,
    ms,
    of_client_log,
    of_member,
    severities,
    snapshot_of,
    topic,
)


@dataclass(frozen=True)
class Trouble:
    """Events and rows of `snapshot_of` as they were, and what came later."""

    events: tuple[Event, ...]
    later: tuple[Event, ...] = ()
    rows: dict[str, Any] = field(default_factory=dict)
    newer: dict[str, Any] = field(default_factory=dict)
    own: dict[str, Any] = field(default_factory=dict)
    until: float = 1000

    def before(self) -> GroupSnapshot:
        """Return the snapshot as it was."""
        return snapshot_of(*self.events, **self.rows, **self.own)

    def after(self) -> GroupSnapshot:
        """Return the snapshot with the newer events and rows; none stands for an old one."""
        rows: dict[str, Any] = {
            name: [*self.rows.get(name, ()), *self.newer.get(name, ())]
            for name in self.rows.keys() | self.newer.keys()
        }
        return snapshot_of(*self.events, *self.later, until=self.until, **rows, **self.own)


def seen(*rows: Row) -> dict[str, Any]:
    return {"facts": list(rows)}


ONE, TWO = (topic(), join("x")), (topic(), join("x"), join("y"))
ALL = GroupSettings(message_model="BROADCASTING")
ORDERLY = GroupSettings(ordered=True)
QUEUE: Row = {"topic": "T", "broker_name": "a", "queue_id": 0}
AGAIN: dict[str, Any] = {
    "commits": [commit(0, 10), commit(0, 40, name="%RETRY%g_T")],
    "facts": [of_client_log(fact("POP_TIMED_OUT", 5, topic="T2", invisible_ms=20_000, log="a"))],
}
"""Messages that come again and again, and a log of a member that does not name the cause."""
GONE = (topic(), join("x"), leave("x", 100))
CONFIG = fact("GROUP_CONFIG", 0, 1000, broker_name="a")
STUCK = {
    "commits": [commit(0, 70, at=300), commit(0, 70, at=900)],
    "ends": [end(0, 90, at=400), end(0, 290, at=900)],
}
NOTHING_READ = {"ends": [end(0, 90, at=100), end(0, 290, at=900)]}
BEHIND = {"commits": [commit(0, 4)], "ends": [end(0, 9)]}
TOPICS = [f"T{n}" for n in range(4)]
SKEWED = [join(f"c{n}", *TOPICS) for n in range(4)]
RING = [join(f"10.0.0.{n}@1", strategy="CONSISTENT_HASH(virtual_nodes=1)") for n in range(8)]
EVERYBODY_WENT = tuple(leave(f"10.0.0.{n}@1", 900) for n in range(8))


def by_hand(client: str, *numbers: int, at: float = 10) -> Event:
    queues = "|".join(f"T/a/{number}" for number in numbers)
    return join(client, strategy=f"CONFIG(queues={queues})", at=at)


def held(client: str, at: float, number: int = 0, **own: Any) -> Row:
    usual: Row = {
        "dropped": False,
        "cached_messages": 3,
        "commit_offset": 10,
        "last_pull_ms": ms(at - 1),
        "last_consume_ms": ms(at - 1),
    }
    where: Row = {"topic": "T", "broker_name": "a", "queue_id": number, "client_id": client}
    return fact("HELD_QUEUE", at, **where, **usual | own)


def answered(client: str, at: float) -> Row:
    """A whole consumerStatus of a client."""
    return fact("DUMP", at, client_id=client, command="consumerStatus", rows=9)


def crash_loop() -> list[Event]:
    stays = [(f"10.0.0.1@{n}#1", 20 + 60 * n) for n in range(6)]
    return [one for client, at in stays for one in (join(client, at=at), leave(client, at + 20))]


def order_info(at: float, popped: float, until: float | None) -> Row:
    blocked = "" if until is None else str(ms(until))
    return fact(
        "ORDER_BLOCK",
        at,
        **QUEUE,
        attempt_id="a",
        commit_bits=int(until is None),
        offsets="150",
        pop_ms=ms(popped),
        invisible_ms=60_000,
        next_visible_ms=blocked,
        blocked_until_ms=blocked,
    )


def popping(at: float, waiting: int) -> list[Row]:
    return [
        fact("POP_SETTINGS", at, client_id="x", invisible_ms=20_000, threads=2),
        fact("CONSUME_RATE", at, client_id="x", topic="T", consume_rt_ms=1_500),
        fact(
            "POP_QUEUE",
            at,
            **QUEUE | {"queue_id": -1},
            client_id="x",
            wait_ack_count=waiting,
            dropped=False,
        ),
    ]


def crowd(at: float, times: int) -> list[Row]:
    texts = [f"{client}/h:{n}{client}" for client in "xy" for n in range(times)]
    return [row for broker in "ab" for row in listed_at(broker, at, *texts)]


STATES: dict[str, list[Trouble]] = {
    "INCONSISTENT_SUBSCRIPTION": [
        Trouble((topic("A"), topic("B"), join("x", "A"), join("y", "B")), (leave("y", 500),)),
    ],
    "UNSUBSCRIBED_SHARE": [
        Trouble(
            (
                topic("A"),
                topic("B"),
                join("x", "A", "B"),
                join("y", "A", "B"),
                of_member(kinds.UNSUBSCRIBE, "y", 100, topic="B"),
            ),
            (of_member(kinds.SUBSCRIBE, "y", 500, topic="B"),),
        ),
    ],
    "INCONSISTENT_TAGS": [
        Trouble(
            TWO,
            (leave("x", 500), leave("y", 501)),
            seen(
                *(
                    fact("CLIENT_TOPIC", 50, 90, topic="T", client_id=one, expression=one)
                    for one in "xy"
                )
            ),
        ),
        Trouble(
            TWO,
            (),
            seen(
                *(
                    fact("CLIENT_TOPIC", 50, 90, topic="T", client_id=one, expression=one)
                    for one in "xy"
                )
            ),
            seen(fact("CLIENT_TOPIC", 500, topic="T", client_id="y", expression="x")),
        ),
        Trouble(
            TWO,
            (),
            seen(
                *(
                    fact("TAGS_CHANGED", 700, 990, 9, topic="T", old=old, new=new)
                    for old, new in ("AB", "BA")
                )
            ),
            until=3000,
        ),
    ],
    "DUPLICATE_CLIENT_ID": [
        Trouble(
            (*ONE, join("x", at=100, channel="x:2"), join("y", at=110)), (leave("x", 900, "x:2"),)
        ),
    ],
    "MEMBERS_MULTIPLIED": [
        Trouble(TWO, (), {"members": [*crowd(300, 3), *crowd(500, 3)]}, {"members": crowd(800, 1)}),
    ],
    "IDLE_MEMBER": [Trouble((topic(read=1), join("x"), join("y")), (leave("x", 500),))],
    "MEMBER_SUSPENDED": [
        Trouble(
            (*TWO, of_member(kinds.CONSUMER_SUSPEND, "x", 100)),
            (of_member(kinds.CONSUMER_RESUME, "x", 500),),
        ),
    ],
    "MEMBER_FLAPS": [Trouble((*ONE, *crash_loop()), until=9000)],
    "REBALANCE_STORM": [
        Trouble(
            (topic(), topic("U"), join("x", "T"), join("y", "U")),
            (),
            seen(fact("NOTIFIED", 10, 990, 66, broker_name="a", address="h:1")),
            until=2000,
        ),
    ],
    "RARE_HEARTBEATS": [
        Trouble(
            (topic(), join("x", heartbeat_broker_interval_ms=150_000), join("y")),
            (leave("x", 500),),
        ),
    ],
    "MEMBER_LISTS_DIFFER": [
        Trouble(
            (*TWO, topic(broker="b")),
            (),
            {"members": [*listed_at("a", 500, "x", "y"), *listed_at("b", 501, "x")]},
            {"members": [*listed_at("a", 800, "x", "y"), *listed_at("b", 801, "x", "y")]},
        ),
    ],
    "NOT_IN_MEMBER_LIST": [
        Trouble(
            TWO,
            (leave("x", 700),),
            seen(fact("NOT_IN_MEMBER_LIST", 300, 600, 15, topic="T", client_id="x", log="c")),
        ),
    ],
    "NO_MEMBER_LIST": [
        Trouble(
            TWO,
            (leave("x", 700),),
            seen(fact("NO_MEMBER_LIST", 300, 600, 15, topic="T", client_id="x", log="c")),
        ),
    ],
    "MEMBERS_APART": [
        Trouble(
            (*TWO, topic(broker="b")),
            later,
            {
                "members": [*listed_at("a", 500, "x"), *listed_at("b", 501, "x")],
                "facts": listed_by("p1", 502, "y"),
            },
            seen(*newer),
        )
        for later, newer in (
            ((leave("x", 700),), ()),
            ((leave("y", 700),), ()),
            (
                (),
                (
                    *listed_by("p1", 802, "x", "y"),
                    fact("GROUP_AT_BROKER", 800, broker_name="a", members=0),
                ),
            ),
        )
    ],
    "MIXED_STRATEGIES": [
        Trouble((*ONE, join("y", strategy="AVG_BY_CIRCLE")), (leave("y", 500),)),
    ],
    "MIXED_VERSIONS": [Trouble((*ONE, join("y", version="4.9.7")), (leave("y", 500),))],
    "MIXED_LANGUAGES": [
        Trouble(
            (
                topic(read=8),
                *(
                    join(one, strategy="CONSISTENT_HASH(virtual_nodes=10)", language=own)
                    for one, own in (("x", "JAVA"), ("y", "GO"))
                ),
            ),
            (leave("y", 500),),
            {"members": [*listed_at("a", 300, "x"), *listed_at("a", 300, "y", language="GO")]},
        ),
    ],
    "MIXED_MESSAGE_MODELS": [
        Trouble((*ONE, join("y", message_model="BROADCASTING")), (leave("y", 500),)),
    ],
    "ORPHAN_QUEUES": [
        Trouble(
            (topic("A"), topic("B"), join("x", "A"), join("y", "B")),
            (leave("y", 500), leave("x", 501), join("z", "A", "B", at=502)),
        ),
    ],
    "DOUBLE_OWNER": [
        Trouble(
            (*ONE, join("x", at=100, channel="x:2"), join("y", at=110)), (leave("x", 900, "x:2"),)
        ),
    ],
    "FROZEN_GROUP": [Trouble((topic(), join("x"), topic(perm=2, at=100)), (topic(at=500),))],
    "SURPLUS_SKEW": [
        Trouble(
            (*(topic(name, read=5) for name in TOPICS), *SKEWED),
            tuple(topic(name, read=8, at=500) for name in TOPICS),
        ),
    ],
    "HASH_IMBALANCE": [Trouble((topic(read=64), *RING), EVERYBODY_WENT)],
    "MACHINE_ROOM_UNMATCHED": [
        Trouble(
            (
                topic(broker="r1@a"),
                topic(broker="r2@b"),
                join("x", strategy="MACHINE_ROOM(consumer_idcs=r1)"),
            ),
            (leave("x", 500), join("y", at=501, strategy="MACHINE_ROOM(consumer_idcs=r1|r2)")),
        ),
    ],
    "CONFIG_GAP": [Trouble((topic(read=2), by_hand("x", 0)), (by_hand("y", 1, at=500),))],
    "CONFIG_OVERLAP": [
        Trouble((topic(read=2), by_hand("x", 0), by_hand("y", 0, 1)), (leave("x", 500),)),
    ],
    "CONFIG_FOREIGN_QUEUE": [
        Trouble((topic(read=2), by_hand("x", 0, 1, 9)), (topic(read=10, at=500),)),
    ],
    "READ_FEWER_THAN_WRITTEN": [
        Trouble((topic(read=2, write=4), join("x")), (topic(read=4, at=500),)),
    ],
    "TOPIC_GONE": [
        Trouble(
            (*ONE, event(kinds.TOPIC_DELETED, 100, topic="T", broker_name="a")), (topic(at=500),)
        ),
    ],
    "GROUP_DISABLED": [
        Trouble(
            ONE,
            (),
            seen(fact("GROUP_CONFIG", 0, 1000, broker_name="a", consume_enable=False)),
            seen(
                fact("GROUP_UPDATED", 1001, broker_name="a", changes="consumeEnable: false → true")
            ),
        ),
    ],
    "GROUP_SETTINGS_DIFFER": [
        Trouble(
            ONE,
            (),
            seen(
                fact("GROUP_CONFIG", 0, 1000, broker_name="a", retry_max_times=16),
                fact("GROUP_CONFIG", 0, 1000, broker_name="b", retry_max_times=3),
            ),
            seen(fact("GROUP_UPDATED", 1001, broker_name="b", changes="retryMaxTimes: 3 → 16")),
        ),
    ],
    "RETRY_QUEUES_UNREAD": [
        Trouble(
            (*ONE, topic("%RETRY%g", read=1)),
            (topic("%RETRY%g", read=4, at=500),),
            seen(fact("GROUP_CONFIG", 0, 1000, broker_name="a", retry_queue_nums=4)),
        ),
    ],
    "POP_MIXED_WITH_PULL": [
        Trouble(
            (*TWO, mode(), join("z", at=50, rebalance_mode="CLIENT")),
            (leave("z", 700),),
            own={"settings": BROKER},
        ),
    ],
    "REVIVE_REPEATS": [
        Trouble(
            ONE,
            rows=AGAIN,
            newer={"commits": [commit(0, 40, at=990, name="%RETRY%g_T")]},
        ),
        Trouble(
            ONE,
            (leave("x", 950),),
            AGAIN,
        ),
    ],
    "POP_UNREACHED_QUEUE": [
        Trouble(
            (topic(), mode("POP(share_queue_num=1)"), by_hand("x", 0), by_hand("y", 1)),
            (leave("x", 500), leave("y", 501), join("z", at=502)),
            own={"settings": BROKER},
        ),
    ],
    "POP_IGNORED": [
        Trouble((topic(), join("x", rebalance_mode="CLIENT"), mode()), (mode("PULL", at=500),)),
    ],
    "GAVE_UP_ASKING": [
        Trouble(
            (topic(), join("x", rebalance_mode="CLIENT"), join("y"), mode()),
            (leave("x", 500),),
            seen(fact("GAVE_UP_ASKING", 30, client_id="x", topic="T", strategy="AVG")),
            own={"settings": BROKER},
        ),
    ],
    "POP_ORDER_BLOCKED": [
        Trouble(
            TWO,
            (),
            seen(order_info(200, 100, 240), order_info(300, 100, 330)),
            seen(order_info(500, 496, None)),
            {"settings": PROXY},
        ),
    ],
    "INVISIBLE_TIME_TOO_SHORT": [
        Trouble(
            (*ONE, mode()),
            (leave("x", 700),),
            seen(
                fact(
                    "POP_TIMED_OUT",
                    100,
                    400,
                    200,
                    topic="T",
                    client_id="x",
                    log="c",
                    invisible_ms=20_000,
                )
            ),
            own={"settings": BROKER},
        ),
        Trouble(
            (*ONE, mode()),
            (),
            seen(*popping(500, 100)),
            seen(*popping(800, 0)),
            {"settings": BROKER},
        ),
        Trouble(
            (*ONE, mode()), (leave("x", 700),), seen(*popping(500, 100)), own={"settings": BROKER}
        ),
    ],
    "MISSING_POP_RETRY_TOPIC": [
        Trouble(
            ONE,
            later,
            seen(fact("MISSING_ROUTE", 100, 500, 390, topic="%RETRY%g_T", client_id="x", log="c")),
            own={"settings": BROKER},
        )
        for later in (
            (leave("x", 700),),
            (topic("%RETRY%g_T", at=600),),
            (leave("x", 600), join("y", at=650)),
        )
    ],
    "RUNNING_NOT_LISTED": [
        Trouble(
            (*ONE, of_member(kinds.CONSUMER_LOST, "x", 300)),
            (join("x", at=1100, channel="n"),),
            {"commits": [commit(0, n, at=300 + 50 * n, client="x") for n in range(14)]},
            until=1500,
        ),
    ],
    "STUCK_ORDER_LOCK": [
        Trouble(
            (*ONE, join("y", at=100)),
            later,
            seen(
                fact(
                    "LOCK_REFUSED",
                    101,
                    600,
                    25,
                    client_id="y",
                    owner="x",
                    **QUEUE | {"queue_id": 2},
                )
            ),
            seen(*newer),
            {"settings": ORDERLY},
        )
        for later, newer in (
            ((leave("x", 700),), ()),
            ((), (held("y", 900, 2, locked=True),)),
        )
    ]
    + [
        Trouble(
            (*ONE, join("y", at=100)),
            later,
            seen(
                fact(
                    "STUCK_QUEUE",
                    500,
                    client_id="x",
                    trouble="lock",
                    count=1,
                    **QUEUE | {"queue_id": 2},
                )
            ),
            seen(*newer),
            {"settings": ORDERLY},
        )
        for later, newer in (
            ((leave("x", 700),), ()),
            ((), (answered("x", 900),)),
            ((), (held("y", 900, 2, locked=True),)),
        )
    ],
    "COMMIT_STANDS_STILL": [
        Trouble(ONE, (), STUCK, {"commits": [commit(0, 71, at=950)]}),
        Trouble(ONE, (leave("x", 960),), STUCK),
    ],
    "NEVER_COMMITTED": [
        Trouble(ONE, (), NOTHING_READ, {"commits": [commit(0, 71, at=950)]}),
        Trouble(ONE, (leave("x", 960),), NOTHING_READ),
    ],
    "CONSUMER_BLOCKED": [
        Trouble(ONE, later, seen(held("x", 300), held("x", 400)), seen(*newer))
        for later, newer in (
            ((leave("x", 500),), ()),
            ((), (answered("x", 500),)),
            ((), (held("x", 500, commit_offset=11),)),
        )
    ],
    "ZOMBIE_QUEUE": [
        Trouble(ONE, later, seen(held("x", 300, dropped=True)), seen(*newer))
        for later, newer in (
            ((leave("x", 500),), ()),
            ((), (answered("x", 500),)),
            ((), (held("x", 500),)),
        )
    ],
    "NOT_PULLING": [
        Trouble(ONE, later, seen(held("x", 500, last_pull_ms=ms(300))), seen(*newer))
        for later, newer in (
            ((leave("x", 600),), ()),
            ((), (answered("x", 600),)),
            ((), (held("x", 600),)),
        )
    ],
    "START_FAILED": [
        Trouble((topic(read=1), by_hand("x", 0, 9, at=100)), later, {}, newer)
        for later, newer in (
            ((leave("x", 500),), {}),
            ((), {"commits": [commit(9, 3, at=700)]}),
            (
                (),
                seen(
                    fact(
                        "QUEUE_PROGRESS",
                        700,
                        topic="T",
                        broker_name="a",
                        queue_id=9,
                        consumer_offset=3,
                        broker_offset=4,
                    )
                ),
            ),
            ((), seen(held("x", 700, 9))),
        )
    ],
    "RESET_NOT_KEPT": [
        Trouble(
            ONE,
            (),
            {
                "facts": [fact("OFFSET_RESET", 300, **QUEUE, offset=90)],
                "commits": [commit(0, 30, at=200), commit(0, 35, at=400)],
            },
            {
                "facts": [fact("OFFSET_RESET", 600, **QUEUE, offset=90)],
                "commits": [commit(0, 95, at=700)],
            },
        ),
    ],
    "COMMITS_ABOVE_END": [
        Trouble(
            (topic(read=1), join("x")),
            (),
            {"ends": [end(0, 900, at=500)], "commits": [commit(0, 1_000, at=490)]},
            {"ends": [end(0, 920, at=800)], "commits": [commit(0, 915, at=790)]},
        ),
    ],
    "LEFTOVER_OFFSETS": [
        Trouble(ONE, (topic(read=8, at=950),), {"facts": [CONFIG], "commits": [commit(7, 4)]}),
    ],
    "OFFLINE_WITH_LAG": [
        Trouble(GONE, later, {**seen(CONFIG), **BEHIND}, newer)
        for later, newer in (((join("y", at=950),), {}), ((), {"commits": [commit(0, 9, at=950)]}))
    ],
    "GROUP_NOT_CONFIGURED": [
        Trouble(ONE, (), {}, seen(fact("GROUP_CONFIG", 990, 1000, broker_name="a")))
    ],
    "GROUP_CAME_BACK": [
        Trouble(
            ONE,
            (),
            seen(
                fact("GROUP_DELETED", 200, broker_name="a"),
                fact("GROUP_CREATED", 300, broker_name="a", by="auto"),
            ),
            seen(newer),
        )
        for newer in (
            fact("GROUP_DELETED", 500, broker_name="a"),
            fact("GROUP_UPDATED", 500, broker_name="a"),
        )
    ],
    "BROADCASTING_REFUSED": [
        Trouble(
            (topic(), join("x", message_model="BROADCASTING")),
            (leave("x", 500),),
            seen(fact("BROADCAST_REFUSED", 100, 200, 50, client_id="x")),
            own={"settings": ALL},
        ),
    ],
}
"""By rule how its trouble is seen, and what ends it."""

BACK = of_member(kinds.CONSUMER_LOST, "h@1#1", 200, detail=EXPIRED)
OUTAGE = (
    event(kinds.MASTER_DOWN, 200, broker_name="a", detail="REFUSED"),
    event(kinds.MASTER_UP, 500, broker_name="a"),
)
EVENTS: dict[str, Trouble] = {
    "EXPIRED_WHILE_ALIVE": Trouble(
        (
            topic(),
            join("h@1#1"),
            join("y"),
            BACK,
            join("h@1#1", at=224, channel="b"),
            of_member(kinds.CONSUMER_LOST, "h@1#1", 400, "b", detail=EXPIRED),
            join("h@1#1", at=500, channel="c"),
        ),
    ),
    "PROXY_GROUP_UNSEEN": Trouble(
        (topic(),),
        (),
        {"commits": [commit(0, n, at=300 + 100 * n) for n in range(4)]},
    ),
    "PULL_EXPIRED": Trouble(
        ONE,
        (),
        seen(fact("PULL_EXPIRED", 300, 420, 2, client_id="x", log="c", **QUEUE)),
    ),
    "START_SKIPPED": Trouble(
        (topic(read=1), join("x", at=100), topic(read=2, at=300)),
        (),
        {"ends": [end(1, 40, low=5, at=290), end(0, 9, at=50)], "commits": [commit(0, 9, at=50)]},
    ),
    "START_REPLAYED": Trouble(
        (topic(read=1), join("x", at=100)), (), {"ends": [end(0, 50, at=50)]}
    ),
    "OFFSET_ROLLBACK": Trouble(
        TWO,
        (),
        seen(
            fact(
                "OFFSET_WENT_BACK",
                500,
                520,
                **QUEUE,
                client_host="h",
                highest_stored=25,
                lowest_asked=20,
            )
        ),
    ),
    "MASTER_GONE_NOT_READ": Trouble((*TWO, *OUTAGE)),
    "MASTER_GONE_LOCKS": Trouble(
        (*TWO, OUTAGE[0], leave("y", 300), OUTAGE[1]), own={"settings": ORDERLY}
    ),
    "BROADCAST_START": Trouble(
        (
            topic(read=1),
            join("h@1", at=100, message_model="BROADCASTING"),
            leave("h@1", 200),
            join("h@2", at=300, message_model="BROADCASTING"),
        ),
        (),
        {"ends": [end(0, 50, low=20, at=50)]},
        own={"settings": ALL},
    ),
}
"""What happened once: the message was read again, or never. No newer fact undoes it, and its
finding names the time.
"""

OF_CLUSTERS = {"BROKER_DOWN"}
"""Of a group it is INFO; that of a cluster is in test_brokers_down.py."""


def loud(rule: str, group: GroupSnapshot) -> bool:
    return bool({*severities(rule, group)} - {INFO})


@pytest.mark.parametrize(
    ("rule", "trouble"),
    [
        pytest.param(rule, one, id=f"{rule}-{number}")
        for rule, troubles in STATES.items()
        for number, one in enumerate(troubles)
    ],
)
def test_a_newer_fact_ends_it(rule: str, trouble: Trouble) -> None:
    assert loud(rule, trouble.before())
    assert not loud(rule, trouble.after())


@pytest.mark.parametrize("rule", EVENTS)
def test_what_happened_has_its_time(rule: str) -> None:
    group = EVENTS[rule].before()
    assert loud(rule, group)
    assert all(one.last_ms is not None for one in findings_of(rule, group))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.rule_id)
def test_every_rule_is_one_of_the_two(rule: Rule) -> None:
    is_in = [rule.rule_id in kind for kind in (STATES, EVENTS, OF_CLUSTERS)]
    assert sum(is_in) == 1 or (not any(is_in) and rule.severity == INFO)
    assert rule.rule_id in STATES or not rule.state or rule.severity == INFO
