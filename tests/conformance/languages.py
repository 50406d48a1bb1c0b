"""Compares our strategies with answers of clients in other languages: one answer, one fact."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rebalance_core.model.errors import AllocationError, RebalanceError
from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies import AllocationStrategy, make_strategy
from rebalance_core.strategies.go import go_strategy

KEYS = {"language", "strategy", "params", "queues", "cids", "answers"}
LETS_GO = frozenset({"GO"})
"""Languages whose strategies answer an empty argument with an empty list; the others throw."""
KNOWN = frozenset({"GO", "CPP", "NODE", "RUST"})


def compare(path: Path) -> tuple[int, list[str]]:
    """(facts, descriptions of the mismatches) of a file of language vectors, a JSON object a line.

    The result must be equal in content and order; an answer that throws must throw here.
    """
    facts, mismatches = 0, []
    with path.open(encoding="utf-8", newline="\n") as lines:
        for number, line in enumerate(lines, start=1):
            case = json.loads(line)
            for given in case["answers"]:
                facts += 1
                expected = "throws" if "throws" in given else _queues(case, given["result"])
                actual = answer(case, given["self"])
                if actual != expected:
                    mismatches.append(
                        f"{path.name}:{number}: {case['language']} {case['strategy']} of "
                        f"{given['self']!r}: expected {expected}, got {actual}"
                    )
    return facts, mismatches


def _queues(case: Mapping[str, Any], given: Sequence[Any]) -> list[MessageQueue]:
    """The queues of a result, which names them or their places."""
    return [MessageQueue(*(case["queues"][one] if isinstance(one, int) else one)) for one in given]


def answer(case: Mapping[str, Any], client_id: str) -> list[MessageQueue] | str:
    """The queues that the member gets, or ``throws``."""
    if case["language"] not in KNOWN:
        return f"language {case['language']} is not known"
    queues = [MessageQueue(*queue) for queue in case["queues"]]
    try:
        return strategy_of(case).allocate(client_id, queues, case["cids"])
    except AllocationError as error:
        drops = case["language"] in LETS_GO and error.java_class == "IllegalArgumentException"
        return [] if drops else "throws"
    except RebalanceError as error:
        return f"cannot be computed: {error}"


def strategy_of(case: Mapping[str, Any]) -> AllocationStrategy:
    """The strategy of a case as its language divides."""
    name, given = case["strategy"], case["params"]
    params: dict[str, Any] = {}
    if name == "CONSISTENT_HASH":
        params = {"virtual_nodes": given}
    elif name == "MACHINE_ROOM":
        params = {"consumer_idcs": given}
    elif name == "CONFIG":
        params = {"config": [MessageQueue(*queue) for queue in given or ()]}
    elif name == "MACHINE_ROOM_NEARBY":
        params = {"inner": "AVG"}
    if case["language"] == "GO" and name == "MACHINE_ROOM":
        return make_strategy("GO_MACHINE_ROOM", params)  # a room may be given twice
    strategy = make_strategy(name, params)
    return go_strategy(strategy) if case["language"] == "GO" else strategy
