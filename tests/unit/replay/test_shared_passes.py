"""What members have in common is done once for all of them, so that a giant group stays cheap."""

from collections import Counter
from collections.abc import Sequence

import pytest

from rebalance_core.model.errors import AllocationError
from rebalance_core.model.queue import MessageQueue
from rebalance_core.replay import settle
from rebalance_core.replay.group_replay import replay_group
from rebalance_core.replay.topic_shares import StrategyKey
from rebalance_core.strategies import AllocationStrategy, parse_strategy
from tests.unit.replay.histories import history, join, leave, topic

MEMBERS, QUEUES = 40, 4
JOINS = [join(1_000 * number, f"10.0.0.{number:02}@1") for number in range(MEMBERS)]
UNREADABLE_ROOM = "MACHINE_ROOM_NEARBY-AVG(room_separator=-)"


class Counted(AllocationStrategy):
    """Counts how often a strategy is asked for one member and for all."""

    def __init__(self, text: str, calls: Counter[str]) -> None:
        object.__setattr__(self, "made", parse_strategy(text))
        object.__setattr__(self, "calls", calls)

    made: AllocationStrategy
    calls: Counter[str]

    @property
    def name(self) -> str:
        return self.made.name

    @property
    def throws_for_all(self) -> bool:
        return self.made.throws_for_all

    def allocate(
        self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        self.calls["one"] += 1
        return self.made.allocate(client_id, queues, client_ids)

    def allocate_all(
        self, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> dict[str, list[MessageQueue]]:
        self.calls["all"] += 1
        return self.made.allocate_all(queues, client_ids)


@pytest.mark.parametrize("text", ["AVG", "MACHINE_ROOM", UNREADABLE_ROOM])
def test_a_topic_is_divided_once_for_all_members(text: str) -> None:
    calls = Counter[str]()

    def strategy_for(key: StrategyKey) -> AllocationStrategy:
        return Counted(key[0], calls)

    given = history(topic(0, QUEUES, broker="r@a"), *JOINS, strategy=text)
    made = replay_group(given, strategy_for, include_retry_topics=False)
    assert len(made["epochs"]) == MEMBERS
    assert calls == {"all": MEMBERS}


def test_members_of_which_one_throws_are_asked_one_by_one() -> None:
    class Refusing(Counted):
        def allocate(
            self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
        ) -> list[MessageQueue]:
            if client_id == "x":
                raise AllocationError("java.lang.IllegalStateException", "not x")
            return super().allocate(client_id, queues, client_ids)

        def allocate_all(
            self, queues: Sequence[MessageQueue], client_ids: Sequence[str]
        ) -> dict[str, list[MessageQueue]]:
            return {one: self.allocate(one, queues, client_ids) for one in client_ids}

        @property
        def throws_for_all(self) -> bool:
            return False

    given = history(topic(0, 4), join(1_000, "w"), join(1_000, "x"), join(1_000, "y"))
    made = replay_group(given, lambda key: Refusing(key[0], Counter()), include_retry_topics=False)
    assert made["epochs"][-1]["status"] == "FROZEN"
    owners = {row["queue_id"]: row["client_id"] for row in made["ownership"]}
    assert owners == {0: "w", 1: "w", 2: None, 3: "y"}


@pytest.mark.parametrize("subscriptions", [("T",), None], ids=["known", "in no file"])
def test_members_that_have_and_get_nothing_run_one_pass_for_all(
    subscriptions: tuple[str, ...] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes = list[str]()
    one_pass = settle._pass

    def counted(*arguments: object) -> settle.Outcome:
        passes.append("")
        return one_pass(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(settle, "_pass", counted)
    leaves = [leave(100_000 + 1_000 * number, f"10.0.0.{number:02}@1") for number in range(5)]
    given = history(topic(0, QUEUES), *JOINS, *leaves, subscriptions=subscriptions)
    made = replay_group(given, lambda key: parse_strategy(key[0]), include_retry_topics=False)
    epochs = len(made["epochs"])
    # in each who had a queue, who gets one, and all others
    assert epochs <= len(passes) <= epochs * (2 * QUEUES + 1)
