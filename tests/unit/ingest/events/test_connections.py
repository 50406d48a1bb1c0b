"""Joins and leaves by what brokers and clients log."""

import random

import pytest

from rebalance_core.ingest.events.connections import ConnectionChange, Connections


def test_a_process_is_one_however_many_brokers_it_knows() -> None:
    found = Connections()
    joined = found.connect("a", "1:1", 1_000, "a:1")
    assert [(c.at_ms, c.joined, c.channel) for c in joined] == [(1_000, True, "1:1")]
    assert found.connect("b", "1:2", 1_050, "b:1") == []
    left = found.remove("a", "1:1", 9_000, "a:2", graceful=True, everywhere=True)
    assert found.remove("b", "1:2", 9_100, "b:2", graceful=True, everywhere=True) == []
    assert [(c.at_ms, c.joined, c.channel, c.graceful) for c in left] == [
        (9_000, False, "1:1", True)
    ]


def test_two_processes_with_one_id_are_two_once_every_broker_has_them() -> None:
    found = Connections()
    found.connect("a", "1:1", 1_000, "")
    found.connect("b", "1:2", 1_010, "")
    assert found.connect("a", "1:3", 5_000, "") == []
    (second,) = found.connect("b", "1:4", 5_020, "")
    assert (second.at_ms, second.channel) == (5_000, "1:3")
    assert found.remove("b", "1:4", 8_000, "") == []  # one broker may close an idle connection
    (gone,) = found.remove("a", "1:3", 8_010, "")
    assert (gone.at_ms, gone.channel) == (8_000, "1:3")
    assert found.live == ["1:1"]


@pytest.mark.parametrize(("timed", "processes"), [(True, 1), (False, 3)])
def test_connections_that_one_broker_alone_registers_are_of_one_process(
    timed: bool, processes: int
) -> None:
    """It thaws, and the lines of the others' logs are lost that have the process once."""
    found = Connections(timed=timed)
    for broker in "abc":
        found.connect(broker, f"{broker}:1", 1_000, "")
    for broker in "ab":
        found.remove(broker, f"{broker}:1", 200_000, "", scanned=True)
    found.restart("c", 300_000, "")
    for port in (2, 3, 4):
        found.connect("c", f"c:{port}", 310_000 + port, "")
    assert len(found.live) == processes


def test_a_connection_that_one_broker_closes_and_has_again_makes_no_process() -> None:
    """Of two processes with one id: each still has its connection to the other broker."""
    found = Connections()
    for broker in "ab":
        for port in (1, 2):
            found.connect(broker, f"{broker}:{port}", 1_000 * port, "")
    first, second = found.live
    assert found.remove("b", "b:1", 60_000, "") == []
    assert found.connect("b", "b:3", 79_000, "") == []
    assert found.live == [first, second]
    assert found.process_of("b:3") == first  # the other one has its connection there
    assert found.settle(900_000) == []
    found.remove("a", "a:1", 950_000, "")
    (gone,) = found.remove("b", "b:3", 950_010, "")
    assert (gone.at_ms, gone.channel, found.live) == (950_000, first, [second])


def test_who_does_not_come_back_to_a_broker_that_has_the_others_is_gone() -> None:
    """The other broker's line is lost."""
    found = Connections()
    for broker in "ab":
        for port in (1, 2):
            found.connect(broker, f"{broker}:{port}", 1_000 * port, "")
    assert found.remove("b", "b:2", 60_000, "b:9") == []
    assert found.settle(100_000) == []
    (gone,) = found.settle(160_000)
    assert (gone.at_ms, gone.source, found.live) == (60_000, "b:9", ["a:1"])
    assert found.remove("a", "a:2", 161_000, "") == []
    (last,) = [*found.remove("a", "a:1", 200_000, ""), *found.remove("b", "b:1", 200_010, "")]
    assert last.at_ms == 200_000


def test_two_processes_that_are_killed_together_are_gone_at_once() -> None:
    found = Connections()
    for broker in "ab":
        for port in (1, 2):
            found.connect(broker, f"{broker}:{port}", 1_000 * port, "")
    changes = [
        found.remove(broker, f"{broker}:{port}", 9_000 + port, "")
        for broker in "ab"
        for port in (1, 2)
    ]
    assert [(c.at_ms, c.channel) for of in changes for c in of] == [(9_001, "a:1"), (9_002, "a:2")]
    assert found.live == []


def test_the_process_that_ends_is_the_one_whose_connection_ended() -> None:
    found = Connections()
    found.connect("a", "1:1", 1_000, "")
    found.connect("b", "1:2", 1_010, "")
    found.connect("b", "1:4", 5_000, "")  # b knows of the second process before a does
    found.connect("a", "1:3", 5_020, "")
    first, second = found.live
    assert found.remove("b", "1:4", 8_000, "") == []
    (gone,) = found.remove("a", "1:3", 8_010, "")
    assert (gone.at_ms, gone.channel, found.live) == (8_000, second, [first])


def test_a_thawed_broker_that_lists_a_member_many_times_makes_no_members() -> None:
    found = Connections()
    found.connect("a", "1:1", 1_000, "")
    found.connect("c", "1:2", 1_000, "")
    for port in range(10, 30):
        assert found.connect("c", f"1:{port}", 60_000, "") == []
    for port in range(10, 30):
        assert found.remove("c", f"1:{port}", 70_000, "", scanned=True) == []
    assert len(found.live) == 1


def test_scans_of_several_brokers_are_one_loss_dated_by_the_first() -> None:
    found = Connections()
    for broker in "abc":
        found.connect(broker, f"1:{broker}", 1_000, "")
    assert found.remove("b", "1:b", 102_000, "") == []  # idle, long before the scans
    assert found.remove("a", "1:a", 120_000, "", scanned=True) == []
    (gone,) = found.remove("c", "1:c", 129_000, "", scanned=True)
    assert (gone.at_ms, gone.scanned) == (120_000, True)


def test_a_restarted_broker_that_alone_knew_a_client_waits_for_it() -> None:
    found = Connections()
    found.connect("a", "1:1", 1_000, "")
    assert found.restart("a", 10_000, "a:9") == []
    assert found.connect("a", "1:2", 30_000, "") == []  # back within a heartbeat: no change
    assert found.restart("a", 50_000, "a:99") == []
    (gone,) = found.settle(500_000)
    assert (gone.at_ms, gone.joined) == (50_000, False)


def test_who_died_while_a_broker_was_dead_is_gone_since_the_others_lost_it() -> None:
    """Recorded on 5.2.0 without name servers' logs: a slave was dead when a client was killed."""
    for returns in (False, True):
        found = Connections()
        for broker in "abc":
            found.connect(broker, f"1:{broker}", 1_000, "")
        assert found.remove("a", "1:a", 20_000, "a:2") == []
        assert found.remove("b", "1:b", 20_010, "b:2") == []
        assert found.restart("c", 40_000, "c:9") == []
        if returns:
            assert found.connect("a", "1:2", 60_000, "a:3") == []
            assert found.settle(500_000) == []
        else:
            (gone,) = found.settle(500_000)
            assert (gone.at_ms, gone.joined, gone.source) == (20_000, False, "a:2")


def test_a_broker_out_of_the_route_counts_for_nothing() -> None:
    found = Connections()
    found.connect("a", "1:1", 1_000, "")
    found.connect("b", "1:2", 1_000, "")
    found.forget("b")
    assert found.live == ["1:1"]
    assert len(found.remove("a", "1:1", 5_000, "")) == 1


def test_who_unregistered_at_one_broker_left_whatever_the_others_log() -> None:
    for silent in ("it drops the event", "it is out of the route", "it restarts"):
        found = Connections()
        found.connect("a", "1:1", 1_000, "a:1")
        found.connect("b", "1:2", 1_000, "b:1")
        (left,) = found.remove("b", "1:2", 5_000, "b:2", graceful=True, everywhere=True)
        assert (left.at_ms, left.graceful, left.source) == (5_000, True, "b:2"), silent
        if silent == "it is out of the route":
            found.forget("a")
        elif silent == "it restarts":
            assert found.restart("a", 9_000, "a:9") == []
        assert found.remove("a", "1:1", 130_000, "a:10", scanned=True) == []
        assert found.live == []


def test_a_list_that_still_has_who_unregistered_elsewhere_is_stale() -> None:
    found = Connections(ended={"a"})
    found.connect("a", "1:1", 1_000, "a:1")
    found.connect("b", "1:2", 1_000, "b:1")
    found.remove("b", "1:2", 5_000, "b:2", graceful=True, everywhere=True)
    assert found.relist("a", ["1:1"], 60_000, "dump") == []
    assert len(found.relist("a", ["1:1", "1:9"], 90_000, "dump")) == 1, "it came back"


def test_a_client_of_proxies_leaves_them_one_by_one() -> None:
    found = Connections()
    found.connect("behind p1", "1:1", 1_000, "p1:1")
    found.connect("behind p2", "1:2", 1_000, "p2:1")
    assert found.remove("behind p1", "1:1", 5_000, "p1:2", graceful=True) == []
    (left,) = found.remove("behind p2", "1:2", 35_000, "p2:2", graceful=True)
    assert left.graceful


def test_the_next_process_of_an_id_outlives_the_late_line_of_the_one_before() -> None:
    found = Connections()
    found.connect("a", "1:1", 1_000, "a:1")
    found.connect("b", "1:2", 1_000, "b:1")
    found.remove("a", "1:1", 50_000, "a:2", graceful=True, everywhere=True)
    assert len(found.connect("a", "1:3", 50_500, "a:3")) == 1
    assert found.remove("b", "1:2", 51_000, "b:2", graceful=True, everywhere=True) == []
    found.connect("b", "1:4", 51_000, "b:3")
    assert found.live == ["1:3"]


def test_who_lost_a_connection_may_live_at_a_broker_that_is_dead() -> None:
    found = Connections()
    found.connect("a", "1:1", 1_000, "")
    found.connect("b", "1:2", 1_000, "")
    assert found.remove("b", "1:2", 5_000, "") == []
    found.forget("a")
    assert found.live == ["1:1"]


def test_whatever_the_brokers_say_joins_and_leaves_alternate(seed: int) -> None:
    for round_ in range(300):
        choose = random.Random(seed * 1_000 + round_)
        found, live = Connections(), []
        for step in range(60):
            broker, channel = choose.choice("abc"), str(choose.randrange(6))
            act = choose.choice(["connect", "connect", "remove", "remove", "restart", "forget"])
            at_ms = step * choose.choice([1, 1_000, 50_000])
            if act == "connect":
                changes = found.connect(broker, channel, at_ms, "")
            elif act == "remove":
                graceful, everywhere = choose.random() < 0.5, choose.random() < 0.5
                changes = found.remove(
                    broker, channel, at_ms, "", graceful=graceful, everywhere=everywhere
                )
            elif act == "restart":
                changes = found.restart(broker, at_ms, "")
            else:
                found.forget(broker)
                changes = []
            for change in changes:
                if change.joined:
                    live.append(change.channel)
                else:
                    live.remove(change.channel)
            assert live == found.live, (seed, round_, step)


def test_a_table_listed_after_the_log_ended_replaces_what_was_known() -> None:
    found = Connections(ended={"a"})
    found.connect("a", "1:1", 1_000, "")
    assert found.relist("a", ["1:2"], 60_000, "dump") == [], "it connected anew"
    assert found.live == ["1:1"]
    (second,) = found.relist("a", ["1:2", "1:3"], 90_000, "dump")
    assert (second.at_ms, second.joined, second.channel) == (90_000, True, "1:3")
    (gone,) = found.relist("a", ["1:2"], 120_000, "dump")
    assert (gone.at_ms, gone.joined, gone.channel) == (120_000, False, "1:3")


def test_a_process_that_no_dump_lists_is_gone_by_the_first_of_them() -> None:
    found = Connections(ended={"a", "b"})
    found.connect("a", "1:1", 1_000, "")
    found.connect("b", "1:2", 1_000, "")
    assert found.relist("a", [], 60_000, "dump-a") == []
    (gone,) = found.relist("b", [], 61_000, "dump-b")
    assert (gone.at_ms, gone.source, gone.graceful) == (60_000, "dump-a", False)
    assert found.live == []


def test_what_one_broker_loses_another_one_may_have_whose_log_has_ended() -> None:
    found = Connections(ended={"a"})
    found.connect("a", "1:1", 1_000, "")
    found.connect("b", "1:2", 1_000, "")
    assert found.remove("b", "1:2", 50_000, "b:9") == []
    assert found.connect("b", "1:4", 80_000, "b:10") == [], "it was there all the time"
    assert found.remove("b", "1:4", 200_000, "b:11") == []
    (gone,) = found.settle(200_000 + 90_000)
    assert (gone.at_ms, gone.source) == (200_000, "b:11")
    assert found.live == []


def test_the_line_of_a_loss_goes_before_the_dump_that_confirms_it() -> None:
    found = Connections(ended={"a"})
    found.connect("a", "1:1", 1_000, "")
    found.connect("b", "1:2", 1_000, "")
    found.remove("b", "1:2", 50_000, "b:9", scanned=True)
    (gone,) = found.relist("a", [], 60_000, "dump")
    assert (gone.at_ms, gone.source, gone.scanned) == (50_000, "b:9", True)


@pytest.mark.parametrize(
    ("back", "goes_on_ms", "at_ms", "source"),
    [
        (False, 100_000, 50_000, "b:9"),
        (False, 80_000, 200_000, "dump-a"),
        (True, 100_000, 200_000, "dump-a"),
    ],
)
def test_so_does_a_line_before_the_other_log_ended_if_its_own_goes_on_without_a_return(
    back: bool, goes_on_ms: int, at_ms: int, source: str
) -> None:
    """Recorded: every line of one broker on closed connections was lost."""
    ended = set[str]()
    found = Connections(ended=ended)
    found.connect("a", "1:1", 1_000, "")
    found.connect("b", "1:2", 1_000, "")
    assert found.remove("b", "1:2", 50_000, "b:9") == []
    if back:
        assert found.connect("b", "1:4", 80_000, "b:10") == []
    assert found.settle(50_000 + goes_on_ms) == []
    ended |= {"a", "b"}
    dumps = [*found.relist("a", [], 200_000, "dump-a"), *found.relist("b", [], 201_000, "dump-b")]
    assert [(gone.at_ms, gone.source) for gone in dumps] == [(at_ms, source)]


def test_who_unregisters_is_gone_from_brokers_whose_log_has_ended() -> None:
    found = Connections(ended={"a"})
    found.connect("a", "1:1", 1_000, "")
    found.connect("b", "1:2", 1_000, "")
    (gone,) = found.remove("b", "1:2", 50_000, "b:9", graceful=True)
    assert (gone.at_ms, gone.graceful) == (50_000, True)


def test_who_was_seen_to_go_and_nowhere_since_is_gone_at_the_end() -> None:
    found = Connections(ended={"a"})
    found.connect("a", "1:1", 1_000, "")
    found.connect("b", "1:2", 1_000, "")
    found.remove("b", "1:2", 50_000, "b:9")
    (gone,) = found.finish(60_000)
    assert gone.at_ms == 50_000


def beating_rarely() -> Connections:
    found = Connections()
    found.connect("a", "1:1", 1_000, "")
    found.connect("b", "1:2", 1_010, "")
    return found


def tuples_of(changes: list[ConnectionChange]) -> list[tuple[str, int, bool, str]]:
    return [(one.broker, one.at_ms, one.joined, one.channel) for one in changes]


def test_a_living_member_that_one_broker_expires_lives_on() -> None:
    found = beating_rarely()
    # the scan closes the connection, which may be logged first
    assert found.remove("b", "1:2", 127_000, "") == []
    assert found.remove("b", "1:2", 127_000, "b:1", scanned=True) == []
    changes = found.connect("b", "1:3", 128_000, "b:2")
    assert tuples_of(changes) == [("b", 127_000, False, "1:1"), ("b", 128_000, True, "1:1")]
    assert changes[0].scanned
    assert found.remove("a", "1:1", 129_000, "a:1", scanned=True) == []
    assert tuples_of(found.finish(200_000)) == [("a", 129_000, False, "1:1")]
    assert found.live == ["1:1"]


def test_expiry_everywhere_is_a_loss_and_no_broker_s_own() -> None:
    found = beating_rarely()
    assert found.remove("b", "1:2", 127_000, "", scanned=True) == []
    assert tuples_of(found.remove("a", "1:1", 131_000, "", scanned=True)) == [
        ("", 127_000, False, "1:1")
    ]
    later = beating_rarely()
    later.remove("b", "1:2", 127_000, "", scanned=True)
    assert tuples_of(later.remove("a", "1:1", 400_000, "", scanned=True)) == [
        ("b", 127_000, False, "1:1"),
        ("", 400_000, False, "1:1"),
    ]


def test_what_a_broker_expires_that_was_out_of_the_route_shows_nothing() -> None:
    found = beating_rarely()
    found.forget("b")
    assert found.remove("b", "1:2", 127_000, "", scanned=True) == []
    assert found.connect("b", "1:3", 128_000, "") == []
    assert found.finish(900_000) == []
