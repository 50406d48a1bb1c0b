"""How long messages wait for a receive: against calls played one by one, and recorded ones."""

import random
from pathlib import Path

import pytest

from rebalance_core.protocol.receive_waits import MAX_AWAIT_MS, NEARLY_ALL, ReceiveWait

AWAIT_MS = 1_000
TRIALS = 1_500


def played(chance: random.Random, wait: ReceiveWait) -> list[float]:
    """The waits of messages of one broker at random moments, while every call waits in vain.

    Each client has its callers, which begin a call as soon as their last ended, and one index that
    all of them raise, over its topics in turns and the queues of each.
    """
    queues = wait.own + wait.others
    found = []
    for _ in range(TRIALS):
        at = 50 * AWAIT_MS + chance.random() * queues * wait.topics * AWAIT_MS
        waits = []
        for _ in range(wait.clients):
            phases = sorted(chance.random() * AWAIT_MS for _ in range(wait.calls))
            index = chance.randrange(queues * wait.topics)
            call = max(0, int(at / AWAIT_MS) - 2) * wait.calls
            while True:
                begins = phases[call % wait.calls] + call // wait.calls * AWAIT_MS
                topic, queue = (index + call) % wait.topics, (index + call) // wait.topics % queues
                if begins + AWAIT_MS > at and topic == 0 and queue < wait.own:
                    waits.append(max(0.0, begins - at))
                    break
                call += 1
        found.append(min(waits))
    return sorted(found)


@pytest.mark.parametrize(
    "wait",
    [
        ReceiveWait(4, 4),
        ReceiveWait(4, 4, calls=3),
        ReceiveWait(4, 4, calls=4),
        ReceiveWait(4, 4, calls=5),
        ReceiveWait(4, 4, clients=4),
        ReceiveWait(4, 4, topics=2),
        ReceiveWait(8, 0),
        ReceiveWait(1, 0, topics=3),
        ReceiveWait(4, 12),
        ReceiveWait(4, 12, clients=2, calls=2),
        ReceiveWait(2, 9, topics=3, calls=2),
    ],
    ids=str,
)
def test_no_message_waits_longer_than_stated(wait: ReceiveWait, seed: int) -> None:
    waits = played(random.Random(f"{seed} {wait}"), wait)
    assert waits[-1] <= wait.longest_ms(AWAIT_MS), seed
    for share in (0.5, 0.9, NEARLY_ALL):
        within = sum(waited <= wait.within_ms(share, AWAIT_MS) + 1 for waited in waits)
        assert within >= (share - 0.04) * TRIALS, (share, seed)


def test_the_bound_is_reached_by_one_call_at_a_time(seed: int) -> None:
    wait = ReceiveWait(4, 4)
    assert played(random.Random(seed), wait)[-1] > 0.95 * wait.longest_ms(AWAIT_MS), seed


def recorded() -> list[tuple[str, str, int, int]]:
    lines = (Path(__file__).parent / "recorded_receives.tsv").read_text().splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith(("#", "run"))]
    return [(run, language, int(calls), int(waited)) for run, language, calls, waited in rows]


@pytest.mark.parametrize(("run", "calls"), [("busy", 1), ("busy", 4), ("quiet", 1)])
def test_recorded_messages_wait_no_longer(run: str, calls: int) -> None:
    """Await 10 s; a round trip, and what the application does between two calls, come on top."""
    waits = [w for r, language, c, w in recorded() if (r, language, c) == (run, "java", calls)]
    assert len(waits) >= 10
    assert max(waits) <= ReceiveWait(4, 4, calls=calls).longest_ms(10_000) + 500


def test_a_client_that_asks_queues_at_random_has_no_bound() -> None:
    """Python 5.1.2 makes a new selector, with a random index, for every receive."""
    waits = [waited for _, language, _, waited in recorded() if language == "python"]
    assert max(waits) > ReceiveWait(4, 4).longest_ms(10_000)


def test_a_proxy_waits_20_s_at_most() -> None:
    assert ReceiveWait(4, 4).longest_ms() == 4 * MAX_AWAIT_MS == 80_000
