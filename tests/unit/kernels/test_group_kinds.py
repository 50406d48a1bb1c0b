"""Which groups the kernels leave to the replay; beside each stands a near one that they take."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from rebalance_core.kernels import group_kinds
from rebalance_core.model.events import Event
from rebalance_core.replay.history import GroupHistory
from rebalance_core.strategies import parse_strategy
from tests.unit.kernels.fleets import assert_equal, kernel_tables, replay_rows
from tests.unit.replay.histories import RETRY, commit, event, history, join, leave, seen, topic

BOTH = (topic(0, 4), join(0, "x"), join(9_000, "y"))
LATER = (*BOTH, leave(99_000, "x"))
FIRST, LAST = "CONSUME_FROM_FIRST_OFFSET", "CONSUME_FROM_LAST_OFFSET"
ASCII = "CONSISTENT_HASH(virtual_nodes=2, platform_charset=US-ASCII)"
ROOMS = "MACHINE_ROOM_NEARBY-AVG(client_rooms=x:r|y:r, broker_rooms=a:r)"


def group(*events: Event, **settings: Any) -> GroupHistory:
    """A group with a few offsets and commits of its queues."""
    return history(
        *events,
        offsets=[seen("a0", 0, 0, 5), seen("a3", 9_000, 2, 7)],
        commits=[commit("a0", 9_500, 3, "x"), commit("a3", 50_000, 4)],
        **settings,
    )


def later(*events: Event, **settings: Any) -> GroupHistory:
    """x and y join, something happens, x leaves."""
    return group(*LATER, *events, **settings)


def topics(count: int) -> list[Event]:
    return [topic(0, 1, name=f"T{number:02}") for number in range(count)]


def names(count: int) -> tuple[str, ...]:
    return tuple(f"T{number:02}" for number in range(count))


POP = "POP(share_queue_num=-1)"


def mode(at_ms: int, detail: str = "PULL") -> Event:
    return event(at_ms, "REQUEST_MODE", topic="T", detail=detail)


def hashes(count: int) -> list[Event]:
    """Members on rings of their own."""
    return [
        join(9, f"z{nodes}", strategy=f"CONSISTENT_HASH(virtual_nodes={nodes})")
        for nodes in range(1, count + 1)
    ]


def lost(at_ms: int, client_id: str, channel_id: str | None = None) -> Event:
    return event(at_ms, "CONSUMER_LOST", client_id, channel_id=channel_id)


CASES: Sequence[tuple[str, str, GroupHistory]] = (
    ("REGULAR", "two members", later()),
    ("REGULAR", "nobody ever joins", group(topic(0, 4))),
    ("REGULAR", "no topic at all", group(join(0, "x"), subscriptions=())),
    # strategies
    ("REGULAR", "one member has its own strategy", later(join(9, "z", strategy="AVG_BY_CIRCLE"))),
    ("REGULAR", "a member repeats the group's", later(join(9, "z", strategy="AVG"))),
    ("REGULAR", "versions say nothing to AVG", later(join(9, "z", version="4.9.2"))),
    (
        "REGULAR",
        "no member has the group's",
        group(topic(0, 4), join(0, "x", strategy="AVG"), strategy="MACHINE_ROOM"),
    ),
    ("REGULAR", "4.9 hashes otherwise", later(join(9, "z", version="4.9.2"), strategy=ASCII)),
    ("REGULAR", "before its first epoch", later(join(9, "z", strategy="CONFIG"), leave(9, "z"))),
    (
        "NO_KERNEL",
        "one member's strategy has none",
        later(join(9, "z", strategy="MACHINE_ROOM"), leave(9, "z")),
    ),
    (
        "REGULAR",
        "a list beside AVG",
        later(join(9, "z", strategy="CONFIG(queues=T/a/1|T/b/7)"), leave(20_000, "z")),
    ),
    ("REGULAR", "eight strategies", later(*hashes(7))),
    ("MANY_STRATEGIES", "nine strategies", later(*hashes(8))),
    # subscriptions
    (
        "SUBSCRIPTION_UNKNOWN",
        "no row states what one subscribes",
        group(topic(0, 4), join(0, "x", "T"), join(9_000, "y"), subscriptions=None),
    ),
    (
        "REGULAR",
        "each states its own",
        group(topic(0, 4), join(0, "x", "T"), join(9_000, "y", "T"), subscriptions=None),
    ),
    # languages
    *(
        (
            "REGULAR",
            f"{language} beside Java under {strategy}",
            later(join(9, "z", language=language), leave(90_000, "z"), strategy=strategy),
        )
        for language in ("JAVA", "GO", "PHP")
        for strategy in ("AVG", "CONSISTENT_HASH(virtual_nodes=3)", ROOMS.replace("y:r", "y:r|z:r"))
    ),
    *(
        ("REGULAR", f"Go {version} starts", later(join(9, "z", version=version, language="GO")))
        for version in ("2.0.0", "2.1.0", "2.1.1", "2.1.2")
    ),
    *(
        (
            "REGULAR",
            f"Go 2.1.1 starts under {mode} at {offsets}",
            history(
                topic(0, 4),
                join(0, "x"),
                join(9_000, "z", version="2.1.1", language="GO"),
                consume_from_where=mode,
                broker_version=broker,
                offsets=offsets,
                commits=[],
            ),
        )
        for mode in (FIRST, LAST)
        for broker in ("4.9", "5.3")
        for offsets in (
            [seen("a3", 1_000, 0, 0)],
            [seen("a3", 1_000, 2, 7)],
            [seen("a3", 1_000, 0, 7)],
            [],
            [seen("a3", 100_000, 0, 0)],
            [seen("a3", 1_000, 2, 7), seen("a3", 80_000, 2, 9)],
        )
    ),
    *(
        (
            "REGULAR",
            f"Go {version} reads all queues and starts as no recording shows",
            history(
                topic(0, 4),
                join(0, "x"),
                join(9_000, "z", version=version, language="GO"),
                message_model="BROADCASTING",
                offsets=[seen("a3", 1_000, 2, 7)],
                commits=[],
            ),
        )
        for version in ("2.1.1", "2.1.2")
    ),
    (
        "REGULAR",
        "Go in two processes of an id",
        later(
            join(9, "z", language="GO"),
            join(9, "z", language="GO", channel_id="2"),
            strategy="CONSISTENT_HASH",
        ),
    ),
    (
        "REGULAR",
        "Go asks no broker",
        later(join(9, "z", language="GO"), strategy="CONSISTENT_HASH", rebalance_mode="CLIENT"),
    ),
    (
        "REGULAR",
        "Go pulls what the others pop",
        later(mode(0, POP), join(9, "z", language="GO"), rebalance_mode="BROKER"),
    ),
    (
        "REGULAR",
        ".NET behind a proxy",
        later(join(9, "z", language="DOTNET", rebalance_mode="PROXY")),
    ),
    (
        "REGULAR",
        "Go starts in a mode that was not run",
        later(join(9, "z", language="GO", consume_from_where=FIRST)),
    ),
    (
        "LANGUAGE",
        "C++ starts in a mode that was not run",
        later(join(9, "z", language="CPP", consume_from_where=FIRST)),
    ),
    *(
        (
            "LANGUAGE",
            f"{language} passes at other times under {strategy}",
            later(join(9, "z", language=language), leave(90_000, "z"), strategy=strategy),
        )
        for language in ("CPP", "RUST")
        for strategy in ("AVG", "CONSISTENT_HASH(virtual_nodes=3)")
    ),
    (
        "LANGUAGE",
        "what C++ keeps without a readable queue was not run",
        later(join(9, "z", language="CPP"), event(20_000, "BROKER_DOWN", broker_name="a")),
    ),
    (
        "NO_KERNEL",
        "Go by rooms",
        later(join(9, "z", language="GO"), strategy="MACHINE_ROOM(consumer_idcs=r)"),
    ),
    (
        "LANGUAGE",
        "Go without a readable queue lets go",
        later(join(9, "z", language="GO"), event(20_000, "BROKER_DOWN", broker_name="a")),
    ),
    (
        "LANGUAGE",
        "Go without a readable queue lets go of what it reads whole",
        later(
            join(9, "z", language="GO"),
            event(20_000, "BROKER_DOWN", broker_name="a"),
            message_model="BROADCASTING",
        ),
    ),
    (
        "LANGUAGE",
        "Node with a circle was not run",
        later(join(9, "z", language="NODE"), strategy="AVG_BY_CIRCLE"),
    ),
    ("LANGUAGE", "Node is not told of changes", later(join(9, "z", language="NODE"))),
    (
        "LANGUAGE",
        "Go passes every 20 s, whatever its Java members do",
        later(join(9, "z", language="GO"), wait_interval_ms=5_000),
    ),
    ("LANGUAGE", "Go keeps order locks", later(join(9, "z", language="GO"), ordered=True)),
    ("LANGUAGE", "C++ is read to unlock", later(join(9, "z", language="CPP"), ordered=True)),
    ("LANGUAGE", "nobody knows what .NET sorts by", later(join(9, "z", language="DOTNET"))),
    (
        "REGULAR",
        ".NET that divides nothing",
        later(join(9, "z", language="DOTNET", version="2.5"), leave(9, "z")),
    ),
    (
        "LANGUAGE",
        "Go sorts by bytes",
        later(join(9, "\U0001f600", language="GO"), join(9, "\uffee")),
    ),
    ("REGULAR", "Java sorts as ever", later(join(9, "\U0001f600"), join(9, "\uffee"))),
    (
        "OWN_INTERVALS",
        "its timers are not its group's",
        later(join(9, "z", wait_interval_ms=5_000)),
    ),
    (
        "REGULAR",
        "its timers are its group's",
        later(join(9, "z", wait_interval_ms=5_000), wait_interval_ms=5_000),
    ),
    # models
    ("REGULAR", "one reads everything", later(join(9, "z", message_model="BROADCASTING"))),
    (
        "REGULAR",
        "one of many divides, with a retry topic, and goes",
        later(
            join(9, "z", message_model="CLUSTERING"),
            leave(20_000, "z"),
            topic(30_000, 1, "T", "b"),
            message_model="BROADCASTING",
        ),
    ),
    (
        "REGULAR",
        "the only one that divides comes and goes within an instant",
        later(
            join(9, "z", message_model="CLUSTERING"),
            leave(9, "z"),
            event(40_000, "BROKER_DOWN", broker_name="a"),
            message_model="BROADCASTING",
        ),
    ),
    ("REGULAR", "all read everything", later(message_model="BROADCASTING")),
    (
        "REGULAR",
        "BROADCASTING divides nothing, whatever the strategies",
        later(join(9, "z", strategy="CONFIG"), message_model="BROADCASTING"),
    ),
    # kernels
    ("REGULAR", "a fixed list", later(strategy="CONFIG(queues=T/a/0|T/b/7|U/a/0)")),
    ("REGULAR", "no list", later(strategy="CONFIG")),
    (
        "REGULAR",
        "a list of a topic without queues",
        group(join(0, "x"), join(9, "y"), strategy="CONFIG(queues=T/a/0)"),
    ),
    ("NO_KERNEL", "a list with a negative queue id", later(strategy="CONFIG(queues=T/a/-1)")),
    ("NO_KERNEL", "MACHINE_ROOM without rooms throws", later(strategy="MACHINE_ROOM")),
    ("REGULAR", "MACHINE_ROOM with none", later(strategy="MACHINE_ROOM(consumer_idcs=)")),
    ("NO_KERNEL", "a hash in each room", later(strategy=ROOMS.replace("AVG", "CONSISTENT_HASH"))),
    (
        "NO_KERNEL",
        "the broker knows no hash",
        later(strategy="CONSISTENT_HASH", rebalance_mode="BROKER"),
    ),
    ("REGULAR", "the broker knows AVG", later(rebalance_mode="BROKER")),
    (
        "NO_KERNEL",
        "one member asks the broker",
        later(
            join(9, "z", version="5.1"),
            strategy="CONSISTENT_HASH",
            rebalance_mode="BROKER",
            client_version="4.9",
        ),
    ),
    *(
        (
            "REGULAR",
            f"no member asks the broker: {who}",
            later(strategy="CONSISTENT_HASH", rebalance_mode="BROKER", **who),
        )
        for who in (
            {"ordered": True},
            {"consumer_type": "PULL"},
            {"consumer_type": "LITE_PULL"},
            {"message_model": "BROADCASTING"},
            {"client_version": "4.9"},
        )
    ),
    (
        "REGULAR",
        "all that join are old",
        group(
            topic(0, 4),
            join(0, "x", version="4.9.7"),
            strategy="CONSISTENT_HASH",
            rebalance_mode="BROKER",
        ),
    ),
    # request modes
    ("REGULAR", "POP", later(mode(10_000, POP), rebalance_mode="BROKER")),
    ("REGULAR", "POP for a while", later(mode(10_000, POP), mode(20_000), rebalance_mode="BROKER")),
    ("REGULAR", "POP though nobody asks for it", later(mode(10_000, POP))),
    ("REGULAR", "never but PULL", later(mode(10_000), rebalance_mode="BROKER")),
    ("REGULAR", "one member asks", later(join(9, "z", rebalance_mode="BROKER"))),
    (
        "REGULAR",
        "one member asks, and pops",
        later(mode(0, POP), join(9, "z", rebalance_mode="BROKER"), leave(50_000, "z")),
    ),
    ("REGULAR", "all are behind a proxy", later(rebalance_mode="PROXY")),
    ("REGULAR", "one is behind a proxy", later(join(9, "z", rebalance_mode="PROXY"))),
    (
        "BROADCASTING_PROXY",
        "one reads everything behind a proxy",
        later(join(9, "z", rebalance_mode="PROXY", message_model="BROADCASTING")),
    ),
    (
        "SHARED_AND_KEPT",
        "suspended before the others pop",
        later(event(10_000, "CONSUMER_SUSPEND", "y"), mode(20_000, POP), rebalance_mode="BROKER"),
    ),
    (
        "REGULAR",
        "suspended, and no member pops",
        later(event(10_000, "CONSUMER_SUSPEND", "y"), rebalance_mode="BROKER"),
    ),
    (
        "SHARED_AND_KEPT",
        "no queue when the others begin to pop",
        later(
            event(20_000, "BROKER_DOWN", broker_name="a"),
            mode(20_000, POP),
            rebalance_mode="BROKER",
        ),
    ),
    (
        "REGULAR",
        "no queue while they pop",
        later(
            mode(20_000, POP),
            event(20_001, "BROKER_DOWN", broker_name="a"),
            event(60_000, "BROKER_UP", broker_name="a"),
            rebalance_mode="BROKER",
        ),
    ),
    (
        "SHARED_AND_KEPT",
        "one pulls, and there is no queue any more",
        later(
            mode(0, POP),
            join(9, "z", rebalance_mode="BROKER"),
            event(20_001, "BROKER_DOWN", broker_name="a"),
        ),
    ),
    (
        "SHARED_AND_KEPT",
        "no queue when they cease to pop",
        later(
            mode(20_000, POP),
            event(30_000, "BROKER_DOWN", broker_name="a"),
            mode(30_000),
            rebalance_mode="BROKER",
        ),
    ),
    (
        "REGULAR",
        "a member repeats the group's mode",
        later(join(9, "z", rebalance_mode="BROKER"), rebalance_mode="BROKER"),
    ),
    ("REGULAR", "a member repeats the default", later(join(9, "z", rebalance_mode="CLIENT"))),
    # masters
    ("REGULAR", "a master that went", later(event(10_000, "MASTER_DOWN", broker_name="a"))),
    ("REGULAR", "before the last change", later(event(98_999, "MASTER_DOWN", broker_name="a"))),
    (
        "REGULAR",
        "gone and back, and gone again",
        later(
            event(10_000, "MASTER_DOWN", broker_name="a", detail="SLAVE_READ"),
            event(20_000, "MASTER_UP", broker_name="a"),
            event(98_000, "MASTER_DOWN", broker_name="a", detail="REFUSED"),
        ),
    ),
    (
        "REGULAR",
        "a master that went, and everybody reads everything",
        later(
            event(10_000, "MASTER_DOWN", broker_name="a", detail="REFUSED"),
            event(400_000, "MASTER_UP", broker_name="a"),
            message_model="BROADCASTING",
        ),
    ),
    (
        "MASTERLESS",
        "and everybody locks",
        later(
            event(10_000, "MASTER_DOWN", broker_name="a"),
            message_model="BROADCASTING",
            ordered=True,
        ),
    ),
    (
        "REGULAR",
        "and all are behind a proxy",
        later(event(10_000, "MASTER_DOWN", broker_name="a"), rebalance_mode="PROXY"),
    ),
    (
        "REGULAR",
        "and one of them has two processes",
        later(join(9, "x", channel_id="2"), event(10_000, "MASTER_DOWN", broker_name="a")),
    ),
    (
        "MASTERLESS",
        "and one of them, which locks, has two processes",
        later(
            join(9, "x", channel_id="2"),
            event(10_000, "MASTER_DOWN", broker_name="a"),
            ordered=True,
        ),
    ),
    (
        "REGULAR",
        "gone and back",
        later(
            event(300_000, "MASTER_DOWN", broker_name="a"),
            topic(0, 2, broker="b"),
            event(310_000, "MASTER_DOWN", broker_name="b"),
            event(320_000, "MASTER_UP", broker_name="a"),
        ),
    ),
    (
        "REGULAR",
        "gone for no time at all, then a change",
        later(
            event(10_000, "MASTER_DOWN", broker_name="a"),
            event(10_000, "MASTER_UP", broker_name="a"),
        ),
    ),
    (
        "REGULAR",
        "of an orderly group",
        later(event(300_000, "MASTER_DOWN", broker_name="a"), ordered=True),
    ),
    (
        "REGULAR",
        "of an orderly group that changes while no lock is given, and after that",
        later(
            event(10_000, "MASTER_DOWN", broker_name="a"),
            join(20_000, "z"),
            event(60_000, "MASTER_UP", broker_name="a"),
            ordered=True,
        ),
    ),
    (
        "REGULAR",
        "of an orderly group that begins while no lock is given",
        group(
            topic(0, 4),
            event(0, "MASTER_DOWN", broker_name="a"),
            join(10_000, "x"),
            join(99_000, "y"),
            event(100_000, "MASTER_UP", broker_name="a"),
            ordered=True,
        ),
    ),
    (
        "REGULAR",
        "of an orderly group, one member of which is killed and comes back at once",
        later(
            event(10_000, "MASTER_DOWN", broker_name="a"),
            lost(30_000, "x"),
            join(30_000, "x", channel_id="2"),
            ordered=True,
        ),
    ),
    (
        "MASTERLESS",
        "of an orderly group with two processes of an id",
        later(
            join(9, "x", channel_id="2"),
            event(300_000, "MASTER_DOWN", broker_name="a"),
            ordered=True,
        ),
    ),
    (
        "REGULAR",
        "of an orderly group for which a slave acts",
        later(event(300_000, "MASTER_DOWN", broker_name="a", detail="ACTING"), ordered=True),
    ),
    (
        "REGULAR",
        "of one that takes no locks",
        later(event(300_000, "MASTER_DOWN", broker_name="a"), ordered=True, consumer_type="PULL"),
    ),
    (
        "REGULAR",
        "of a group without members",
        group(topic(0, 4), event(10_000, "MASTER_DOWN", broker_name="a")),
    ),
    ("REGULAR", "a master that was never gone", later(event(10_000, "MASTER_UP", broker_name="a"))),
    # members
    ("REGULAR", "a suspended member", later(event(10_000, "CONSUMER_SUSPEND", "y"))),
    (
        "REGULAR",
        "suspended for no time at all",
        later(event(9, "CONSUMER_SUSPEND", "x"), event(9, "CONSUMER_RESUME", "x")),
    ),
    ("REGULAR", "somebody unknown", later(event(10_000, "CONSUMER_SUSPEND", "z"))),
    ("REGULAR", "somebody who left", later(event(99_999, "CONSUMER_SUSPEND", "x"))),
    ("REGULAR", "two channels", later(join(9, "x", channel_id="2"))),
    ("REGULAR", "one after the other", later(join(99_000, "x", channel_id="2"))),
    (
        "REGULAR",
        "the old one goes later in the same instant",
        group(*BOTH, join(99_000, "x", channel_id="2"), lost(99_000, "x")),
    ),
    (
        "REGULAR",
        "an empty group, then it is empty again",
        group(*BOTH[:2], leave(1, "x"), join(9, "x"), leave(9, "x")),
    ),
    ("REGULAR", "another member stays", later(join(9, "z"), leave(9, "z"))),
    (
        "REGULAR",
        "the group ends another time",
        group(*BOTH[:2], leave(1, "x"), join(9, "x"), leave(10, "x")),
    ),
    (
        "RESTART_AT_ONCE",
        "in place with another start mode",
        group(*BOTH, join(99_000, "x", consume_from_where=FIRST)),
    ),
    (
        "REGULAR",
        "in place with the same start mode",
        group(*BOTH, join(99_000, "x", consume_from_where=LAST)),
    ),
    (
        "REGULAR",
        "another start mode and other topics",
        group(*BOTH, join(99_000, "x", "T", "U", consume_from_where=FIRST)),
    ),
    # topics
    ("RETRY_SUBSCRIBED", "its own retry topic", later(event(9, "SUBSCRIBE", "x", topic=RETRY))),
    ("REGULAR", "another group's", later(event(9, "SUBSCRIBE", "x", topic="%RETRY%other"))),
    (
        "REGULAR",
        "its own given up, which it never had",
        later(event(9, "UNSUBSCRIBE", "x", topic=RETRY)),
    ),
    ("REGULAR", "its own named at the join", group(*BOTH, join(9_000, "z", "T", RETRY))),
    (
        "REGULAR",
        "62 and the retry topic, and members that differ",
        group(*topics(62), join(0, "x", *names(62)), join(0, "y", *names(61))),
    ),
    (
        "REGULAR",
        "61 and the retry topic",
        group(*topics(61), join(0, "x", *names(61)), join(0, "y", *names(60))),
    ),
    (
        "REGULAR",
        "70, the same for all",
        group(*topics(70), join(0, "x"), join(9, "y"), subscriptions=names(70)),
    ),
    (
        "ONE_BROKER",
        "one broker alone loses a member",
        later(event(99, "CONSUMER_LOST", "x", broker_name="a", detail="EXPIRED")),
    ),
    ("REGULAR", "all of them do", later(event(99, "CONSUMER_LOST", "y", detail="EXPIRED"))),
    # names
    (
        "REGULAR",
        "both ids are ? on the ring: the later node wins",
        group(*BOTH[:1], join(0, "é"), join(0, "è"), strategy=ASCII, client_version="4.9"),
    ),
    (
        "RING_COLLISION",
        "and one of them has two processes",
        group(
            *BOTH[:1],
            join(0, "é"),
            join(0, "è"),
            join(9, "é", channel_id="2"),
            strategy=ASCII,
            client_version="4.9",
        ),
    ),
    ("REGULAR", "5.x hashes UTF-8", group(*BOTH[:1], join(0, "é"), join(0, "è"), strategy=ASCII)),
    ("NO_ROOM", "a client", later(join(9, "z"), strategy=ROOMS)),
    ("NO_ROOM", "a broker", later(topic(9, 1, broker="b"), strategy=ROOMS)),
    ("NO_ROOM", "an empty room", group(*BOTH[:1], join(0, "-x"), strategy=ROOMS)),
    (
        "BLANK_CLIENT_ID",
        "a tab up to 4.9.3",
        group(
            topic(0, 2, broker="r1@b"),
            join(0, "\t"),
            join(1, "x"),
            strategy="MACHINE_ROOM(consumer_idcs=r1)",
            client_version="4.9.2",
        ),
    ),
    (
        "REGULAR",
        "a tab since 4.9.4",
        group(
            topic(0, 2, broker="r1@b"),
            join(0, "\t"),
            join(1, "x"),
            strategy="MACHINE_ROOM(consumer_idcs=r1)",
            client_version="4.9.4",
        ),
    ),
    ("REGULAR", "rooms for everybody", later(strategy=ROOMS)),
    (
        "OWN_INTERVALS",
        "a client polls each 90 s",
        later(join(10_000, "z", poll_name_server_interval_ms=90_000)),
    ),
    (
        "REGULAR",
        "the whole group does",
        later(
            join(10_000, "z", poll_name_server_interval_ms=90_000),
            poll_name_server_interval_ms=90_000,
        ),
    ),
    (
        "REGULAR",
        "brokers without notices",
        later(event(5_000, "NOTICES", broker_name="a", detail="OFF"), notified=False),
    ),
    ("REGULAR", "a broker of a topic nobody reads", later(topic(9, 1, "U", "b"), strategy=ROOMS)),
)


@pytest.mark.parametrize(
    ("reason", "given_group"), [(r, g) for r, _, g in CASES], ids=[f"{r}: {c}" for r, c, _ in CASES]
)
@pytest.mark.parametrize("alone", [True, False], ids=["alone", "beside a regular group"])
def test_the_reason_and_the_rows_of_a_group(
    reason: str, given_group: GroupHistory, alone: bool
) -> None:
    beside = [] if alone else [GroupHistory("d", "beside", given_group.settings, LATER, (), ())]
    kernels, reasons = kernel_tables([given_group, *beside])
    assert reasons["c", "g"] == reason
    own = {table: [row for row in rows if row["cluster"] == "c"] for table, rows in kernels.items()}
    if reason == "REGULAR":
        assert_equal(own, replay_rows([given_group]))
    else:
        assert not any(own.values())


@pytest.mark.parametrize("seed", range(20))
def test_of_points_that_coincide_the_later_member_s_counts(seed: int) -> None:
    draw = random.Random(seed)
    live: set[str] = set()
    happened = []
    for at_ms in range(0, 200_000, 10_000):
        client = draw.choice(("é", "è", "ê", "a", "ü"))
        kind = event(at_ms, "CONSUMER_LEAVE", client) if client in live else join(at_ms, client)
        live ^= {client}
        happened.append(kind)
    given = group(topic(0, 16), *happened, strategy=ASCII, client_version="4.9")
    kernels, reasons = kernel_tables([given])
    assert reasons["c", "g"] == "REGULAR"
    assert_equal(kernels, replay_rows([given]))
    assert len({row["client_id"] for row in kernels["ownership"]}) > 2


def test_the_first_of_several_reasons_counts() -> None:
    twice = join(9, "x", channel_id="2")
    suspended = event(10, "CONSUMER_SUSPEND", "x")
    for reason, several in (
        ("NO_KERNEL", later(twice, suspended, strategy="MACHINE_ROOM")),
        ("RETRY_SUBSCRIBED", later(twice, event(11, "SUBSCRIBE", "x", topic=RETRY))),
    ):
        assert kernel_tables([several])[1] == {("c", "g"): reason}


def test_there_is_a_group_for_every_reason() -> None:
    assert {reason for reason, _, _ in CASES} == set(group_kinds.REASONS)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("AVG", group_kinds.BY_PLACE),
        ("AVG_BY_CIRCLE", group_kinds.BY_PLACE),
        ("CONSISTENT_HASH(virtual_nodes=0)", group_kinds.ON_RING),
        ("MACHINE_ROOM(consumer_idcs=r)", group_kinds.BY_PLACE),
        ("MACHINE_ROOM", group_kinds.NOT_VECTORIZED),
        ("MACHINE_ROOM_NEARBY-AVG", group_kinds.IN_ROOMS),
        ("MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE", group_kinds.IN_ROOMS),
        ("MACHINE_ROOM_NEARBY-MACHINE_ROOM_NEARBY-AVG", group_kinds.NOT_VECTORIZED),
        ("MACHINE_ROOM_NEARBY-CONFIG", group_kinds.NOT_VECTORIZED),
        ("CONFIG", group_kinds.CONFIGURED),
    ],
)
def test_the_kind_of_a_strategy(text: str, kind: int) -> None:
    assert group_kinds.kinds_of([parse_strategy(text)]).tolist() == [
        kind,
        group_kinds.NOT_VECTORIZED,
    ]


def test_strategies_of_one_rule_by_place_have_one_kind() -> None:
    texts = (
        "MACHINE_ROOM(consumer_idcs=r)",
        "AVG",
        "MACHINE_ROOM(consumer_idcs=s)",
        "AVG_BY_CIRCLE",
    )
    kinds = group_kinds.kinds_of(list(map(parse_strategy, texts)))
    first = group_kinds.BY_PLACE
    assert kinds.tolist() == [first, first + 1, first, first + 2, group_kinds.NOT_VECTORIZED]
