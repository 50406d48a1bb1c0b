"""Errors of the kinds of change with 30 or more observations (docs/fidelity.md, Time)."""

from functools import cache

from tests.recordings.tables import RECORDINGS
from tests.recordings.timings.compared import OVERLOADED, Compared, Given, compared
from tests.recordings.timings.forms import Form, Quantile, forms

SEEDS = 40
MOST = {"median": 0.10, "p99": 0.15}
KINDS = {"broker down": 53, "broker up": 68, "join": 212, "leave": 36, "queues": 38}


@cache
def of(given: Given) -> dict[str, Form]:
    """By kind; all of them are of 5.3."""
    found: list[Compared] = []
    for name in set(RECORDINGS) - set(OVERLOADED):
        found += compared(name, SEEDS, given=given)
    return {one.kind: one for one in forms({given: found})}


def quantiles(one: Form) -> dict[str, Quantile]:
    return {"median": one.median, "p99": one.high}


def beyond(given: Given) -> dict[tuple[str, str], float]:
    """Errors beyond `MOST` by (kind, quantile), per future."""
    return {
        (kind, name): its.per_future_error
        for kind, one in of(given).items()
        for name, its in quantiles(one).items()
        if abs(its.per_future_error) > MOST[name]
    }


def test_with_what_the_recorder_knew_every_kind_holds() -> None:
    assert {kind: one.count for kind, one in of(Given.RECORDER).items()} == KINDS
    assert beyond(Given.RECORDER) == {}
    pooled = {kind: one.median.pooled_error for kind, one in of(Given.RECORDER).items()}
    assert max(map(abs, pooled.values())) <= MOST["median"], pooled


def test_from_the_tables_alone_what_the_recorder_did_to_clocks_and_brokers_is_missing() -> None:
    """He stopped members before brokers ended and queues changed; brokers registered late."""
    assert {kind: one.count for kind, one in of(Given.TABLES).items()} == KINDS
    assert set(beyond(Given.TABLES)) == {
        ("broker down", "median"), ("broker up", "median"), ("queues", "p99")
    }  # fmt: skip
