import pytest

from rebalance_core.audit.case import GroupCase
from tests.unit.audit.cases import case_of, findings_of, join, topic

TOPICS = [f"T{n}" for n in range(4)]


def test_the_surplus_of_many_topics_falls_to_the_first() -> None:
    members = [join(f"c{n}", *TOPICS) for n in range(4)]
    case = case_of(*(topic(name, read=5) for name in TOPICS), *members)
    (one,) = findings_of("SURPLUS_SKEW", case)
    assert "c0 hold 8 queues" in one.summary


def test_an_even_division_is_no_skew() -> None:
    members = [join(f"c{n}", *TOPICS) for n in range(4)]
    assert findings_of("SURPLUS_SKEW", case_of(*(topic(n, read=8) for n in TOPICS), *members)) == []
    few = [join(f"c{n}", *TOPICS[:2]) for n in range(4)]
    assert findings_of("SURPLUS_SKEW", case_of(*(topic(n, read=1) for n in TOPICS[:2]), *few)) == []


def hashed(nodes: int, language: str = "JAVA") -> GroupCase:
    text = f"CONSISTENT_HASH(virtual_nodes={nodes})"
    members = (join(f"10.0.0.{n}@1", strategy=text, language=language) for n in range(8))
    return case_of(topic(read=64), *members)


@pytest.mark.parametrize("language", ["JAVA", "GO"])
def test_a_ring_with_few_points(language: str) -> None:
    (one,) = findings_of("HASH_IMBALANCE", hashed(1, language))
    assert "of 64 queues; the mean of 8 members is 8.0" in one.summary


def test_a_ring_with_many_points_and_other_strategies() -> None:
    assert findings_of("HASH_IMBALANCE", hashed(500)) == []
    assert findings_of("HASH_IMBALANCE", case_of(topic(read=1), join("x"), join("y"))) == []


def test_members_without_any_queue_are_another_rule() -> None:
    members = [join(f"c{n:02}", *TOPICS) for n in range(20)]
    assert (
        findings_of("SURPLUS_SKEW", case_of(*(topic(name, read=2) for name in TOPICS), *members))
        == []
    )
