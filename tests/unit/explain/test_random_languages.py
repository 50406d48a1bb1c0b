"""Explain random groups of clients of several languages: the answers are those of the replay."""

import random

import pytest

from rebalance_core.explain.client_pass import client_pass
from rebalance_core.replay.history import GroupHistory
from tests.unit.explain.ledgers import group_rows
from tests.unit.explain.test_random_groups import check
from tests.unit.replay.histories import GROUP, history, join, leave, ledger, topic

IDS = ("x", "y", "z", "\uffee", "\U0001f600", "10.0.0.1@5", "10.0.0.10@5")
"""Two of them are in another order by bytes than by UTF-16."""
LANGUAGES = ("JAVA", "GO", "CPP", "RUST", "NODE", None)
STRATEGIES = ("AVG", "CONSISTENT_HASH(virtual_nodes=3)", "AVG_BY_CIRCLE")


def mixed_group(seed: int) -> GroupHistory:
    draw = random.Random(seed)
    events = [topic(0, draw.randint(1, 6)), topic(0, draw.randint(1, 4), broker="b")]
    events.append(topic(0, draw.randint(1, 3), "U"))
    at_ms, live = 1_000, list[str]()
    for _ in range(draw.randint(3, 8)):
        at_ms += draw.choice([1_000, 30_000, 200_000])
        free = [one for one in IDS if one not in live]
        what = draw.random()
        if what < 0.65 and free:
            live.append(draw.choice(free))
            topics = draw.choice([("T",), ("T", "U"), ("U",)])
            events.append(join(at_ms, live[-1], *topics, language=draw.choice(LANGUAGES)))
        elif what < 0.8 and live:
            events.append(leave(at_ms, live.pop(draw.randrange(len(live)))))
        else:
            events.append(
                topic(at_ms, draw.randint(1, 6), broker=draw.choice("ab"), perm=draw.choice([6, 2]))
            )
    return history(*events, strategy=draw.choice(STRATEGIES), ordered=draw.random() < 0.3)


@pytest.mark.parametrize("block", range(6))
def test_owners_and_lists_are_the_replay_s(block: int) -> None:
    for seed in range(block * 20, block * 20 + 20):
        print("seed", seed)
        assert "UNKNOWN" not in check(mixed_group(seed))


def test_the_pass_of_a_go_member_is_noted_as_java_s_steps() -> None:
    members = join(1_000, "x"), join(1_000, "y", language="GO", version="2.1.2")
    rows = group_rows(ledger(history(topic(0, 4), *members)), GROUP)
    for client_id, noted in (("x", False), ("y", True)):
        done = client_pass(rows, [], client_id, 2_000)
        assert done.agrees
        assert any("this client is written in GO" in note for note in done.notes) == noted
