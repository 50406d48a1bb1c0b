"""Load, backlog and catch-up from rates of queues."""

from math import inf, nan
from typing import Any

import pyarrow as pa
import pytest

from rebalance_core.contracts.planning import PLAN_INPUT_TABLES, QUEUE_RATES
from rebalance_core.model.errors import UsageError
from rebalance_core.model.queue import MessageQueue
from rebalance_core.planning import what_if
from rebalance_core.planning.sizing import (
    Backlog,
    ConsumerRate,
    backlog,
    load_per_consumer,
    rates_at,
)

A0, A1 = MessageQueue("T", "a", 0), MessageQueue("T", "a", 1)


def row(
    queue: MessageQueue, from_ms: int, to_ms: int | None, rate: float, cluster: str = "c"
) -> dict[str, Any]:
    values = (cluster, *queue, from_ms, to_ms, rate)
    return dict(zip(QUEUE_RATES.column_names, values, strict=True))


def test_the_contract_has_a_schema() -> None:
    assert PLAN_INPUT_TABLES == {"queue_rates": QUEUE_RATES}
    assert QUEUE_RATES.arrow_schema().field("messages_per_second").type == pa.float64()
    assert set(QUEUE_RATES.key) < set(QUEUE_RATES.column_names)


def test_the_rate_of_a_moment() -> None:
    rows = [row(A0, 0, 10, 1.0), row(A0, 10, None, 2.0), row(A1, 5, 9, 7.0)]
    assert rates_at(rows, 9) == {A0: 1.0}
    assert rates_at(rows, 10) == {A0: 2.0}
    assert rates_at(rows, 5) == {A0: 1.0, A1: 7.0}


def test_clusters_are_not_mixed() -> None:
    rows = [row(A0, 0, None, 1.0), row(A0, 0, None, 2.0, "d")]
    with pytest.raises(UsageError, match=r"several clusters \(c, d\)"):
        rates_at(rows, 1)
    assert rates_at(rows, 1, cluster="d") == {A0: 2.0}


def test_wrong_rates_are_all_named() -> None:
    rows = [row(A0, 0, None, -1.0), row(A0, 0, 9, 1.0), row(A1, 0, None, nan)]
    with pytest.raises(UsageError) as caught:
        rates_at(rows, 1)
    assert len(str(caught.value).splitlines()) == 3


def test_even_in_queues_is_not_even_in_messages() -> None:
    after = what_if(["x", "y"], {"T": {"a": 4}}, "AVG", {}).after
    rates = {MessageQueue("T", "a", i): rate for i, rate in enumerate((90.0, 10.0, 1.0))}
    assert load_per_consumer(after.owners, after.client_ids, rates) == {
        "x": ConsumerRate(2, 100.0, 0),
        "y": ConsumerRate(2, 1.0, 1),
    }


def test_idle_members_have_no_load() -> None:
    assert load_per_consumer({A0: ()}, ["x"], {A0: 1.0}) == {"x": ConsumerRate(0, 0.0, 0)}


@pytest.mark.parametrize(
    ("rate", "window_ms", "capacity", "expected"),
    [
        (100, 3_000, 400, Backlog(300.0, 1.0)),
        (100, 3_000, 100, Backlog(300.0, inf)),
        (100, 3_000, 50, Backlog(300.0, inf)),
        (100, 0, 50, Backlog(0.0, 0.0)),
        (0, 3_000, 0, Backlog(0.0, 0.0)),
    ],
)
def test_backlog_and_catch_up(
    rate: float, window_ms: int, capacity: float, expected: Backlog
) -> None:
    assert backlog(rate, window_ms, capacity) == expected


def test_wrong_numbers_are_all_named() -> None:
    with pytest.raises(UsageError) as caught:
        backlog(-1, nan, inf)  # type: ignore[arg-type]
    assert len(str(caught.value).splitlines()) == 3
