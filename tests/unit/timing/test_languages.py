"""Members of other languages in simulated time: their passes, and who is told of what."""

from dataclasses import replace
from itertools import pairwise

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from rebalance_core.engine.propagation import is_unknown
from rebalance_core.model import events
from rebalance_core.replay.history import GroupHistory
from rebalance_core.timing.vectorized.reference_only import (
    ENDS_PASS,
    LETS_GO,
    LOCKS_KEPT,
    REGULAR,
    reason_of,
)
from tests.unit.kernels.random_groups import TRAITS, groups
from tests.unit.replay.histories import event, history, topic
from tests.unit.timing.futures import EXACT, futures, happens, joins, story, two_brokers
from tests.unit.timing.test_vectorized_equals_reference import OPTIONS, Tally, awake, compare

EXAMPLES = 40
LANGUAGES = (None, "GO", "CPP", "NODE", "RUST", "JAVA")
COMES_MS = 200_000


def translated(history: GroupHistory, first: int, *, mixed: bool) -> GroupHistory:
    """The group with members of several languages.

    Where members have several topics, a pass of C++ may end before the last of them, which only
    the loop plays: there are fewer of them then.
    """
    languages = (*LANGUAGES, *(each for each in LANGUAGES * mixed * 2 if each != "CPP"))
    changed = []
    for event_ in history.events:
        if event_.event_type == events.CONSUMER_JOIN:
            number = first + sum(map(ord, event_.client_id or ""))
            language = languages[number % len(languages)]
            version = event_.version if language in (None, "JAVA") else None
            event_ = replace(event_, language=language, version=version)
        changed.append(event_)
    pushes = replace(history.settings, consumer_type="PUSH")
    return replace(history, events=tuple(changed), settings=pushes)


@pytest.mark.parametrize("mixed", [False, True])
def test_members_of_all_languages_have_the_log_of_the_loop(seed: int, mixed: bool) -> None:
    tally = Tally()

    def check(history: GroupHistory, options: object, first: int, client: str) -> None:
        its = translated(awake(history, 123, client, "5.3", mixed=mixed), first, mixed=mixed)
        compare(its, options, tally)  # type: ignore[arg-type]  # a ClockOptions

    quiet = settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        print_blob=False,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    any_groups = groups(traits=("twins", "timers") if mixed else TRAITS) | groups()
    versions = st.sampled_from(("4.9", "5.3", "5.5"))
    arguments = given(any_groups, OPTIONS, st.integers(0, 20), versions)
    quiet(hypothesis.seed(seed)(arguments(check)))()
    assert tally.reasons[REGULAR] > EXAMPLES / 5
    assert tally.rows > EXAMPLES


def gives_up_after_ms(language: str | None) -> list[float]:
    """How long the first member holds what the second one takes, future by future."""
    first, second = joins(0, "x", language=language), joins(COMES_MS, "y")
    found = []
    for future in futures(*two_brokers(), first, second):
        drops = future.drops("x", COMES_MS - 5_000)
        assert len(drops) == 4
        found.append(max(at for at, _ in drops) - COMES_MS)
    return found


def test_a_node_member_is_blind_until_its_next_pass() -> None:
    late = gives_up_after_ms("NODE")
    assert max(late) > 7_000
    assert max(late) < 12_000


@pytest.mark.parametrize("language", [None, "GO", "CPP", "RUST"])
def test_all_others_get_a_notice(language: str | None) -> None:
    assert max(gives_up_after_ms(language)) < 3_000


@pytest.mark.parametrize(
    ("language", "period_ms"),
    [("NODE", 10_000), ("CPP", 10_000), ("GO", 20_000), ("DOTNET", 60_000), ("JAVA", 20_000)],
)
def test_each_passes_as_often_as_its_client_does(language: str, period_ms: int) -> None:
    first = joins(0, "x", language=language)
    apart = [
        (b.begin_us - a.begin_us) / 1_000
        for future in futures(*two_brokers(), first, joins(900_000, "y"), seeds=3)
        for a, b in pairwise(future.passes("x"))
    ]
    usual = sorted(apart)[len(apart) // 2]
    assert period_ms <= usual < period_ms + 500


@pytest.mark.parametrize(
    ("fields", "unknown"),
    [
        ({"language": "DOTNET"}, True),
        ({"language": "DOTNET", "message_model": "BROADCASTING"}, False),
        ({"language": "DOTNET", "rebalance_mode": "PROXY"}, False),
        ({"language": "GO"}, False),
    ],
)
def test_groups_with_a_net_member_that_divides_are_left_out(
    fields: dict[str, str], unknown: bool
) -> None:
    assert is_unknown(history(*two_brokers(), joins(0, "x"), joins(9, "y", **fields))) == unknown


def test_a_go_member_lets_go_of_a_topic_without_a_readable_queue() -> None:
    shut = [topic(COMES_MS, 4, broker=name, perm=2) for name in "ab"]
    for language, left in (("GO", 0), (None, 8)):
        for future in futures(*two_brokers(), joins(0, "x", language=language), *shut, seeds=5):
            assert len(future.queues_of("x", COMES_MS + 100_000)) == left


def test_a_go_member_lets_go_where_a_broker_knows_no_member() -> None:
    broker = {"broker_name": "a"}
    back = (
        event(COMES_MS, "BROKER_DOWN", **broker),
        event(COMES_MS + 61_000, "BROKER_UP", **broker),
    )
    one = [topic(0, 4)]
    lost = {}
    for language in ("GO", None):
        members = joins(0, "x", language=language), happens(900_000, "CONSUMER_LEAVE", "x")
        assert reason_of(story(*one, *members, *back)) == (LETS_GO if language else REGULAR)
        lost[language] = sum(
            bool(future.drops("x", COMES_MS + 61_000) and future.drops("x")[0][0] < 890_000)
            for future in futures(*one, *members, *back, seeds=40)
        )
    assert lost[None] == 0
    assert lost["GO"] > 0


def test_a_queue_that_go_gives_up_is_locked_for_a_while() -> None:
    waits = {}
    for language in ("GO", "JAVA"):
        both = joins(0, "x", language=language), joins(COMES_MS, "y")
        expected = LOCKS_KEPT if language == "GO" else REGULAR
        assert reason_of(story(*two_brokers(), *both, ordered=True)) == expected
        waits[language] = [
            wait
            for future in futures(*two_brokers(), *both, ordered=True)
            for wait in future.hand_overs(COMES_MS)
        ]
    assert min(waits["GO"]) >= 40_000
    assert max(waits["GO"]) < 62_000
    assert max(waits["JAVA"]) < 30_000


BEYOND = "\uffee", "\U0001f600"
"""By bytes in this order, by UTF-16 in the other."""


@pytest.mark.parametrize("language", ["GO", "CPP", "RUST", None])
def test_members_that_sort_by_bytes_take_what_is_theirs_by_bytes(language: str | None) -> None:
    members = [joins(0, client_id, language=language) for client_id in BEYOND]
    comes = joins(COMES_MS, "z", language=language), happens(900_000, "CONSUMER_LEAVE", "z")
    expected = dict(zip(BEYOND if language else BEYOND[::-1], ("a", "b"), strict=True))
    for future in futures(*two_brokers(), *members, *comes, seeds=5):
        for client_id, broker in expected.items():
            assert {name[0] for name in future.queues_of(client_id, 990_000)} == {broker}


@pytest.mark.parametrize("strategy", ["AVG", "CONSISTENT_HASH(virtual_nodes=3)", "AVG_BY_CIRCLE"])
def test_batch_and_loop_share_out_by_bytes_alike(strategy: str) -> None:
    tally = Tally()
    for language in LANGUAGES:
        for other in LANGUAGES:
            members = [
                joins(at_ms, client_id, language=its)
                for at_ms, client_id, its in (
                    (0, BEYOND[0], language),
                    (0, BEYOND[1], other),
                    (COMES_MS, "z", language),
                )
            ]
            given_ = history(*two_brokers(), *members, strategy=strategy, subscriptions=("T",))
            compare(awake(given_, 123, "5.3", "5.3", mixed=False), EXACT, tally)
    assert tally.reasons[REGULAR] == len(LANGUAGES) ** 2


def test_a_topic_without_a_queue_ends_the_pass_of_a_cpp_member() -> None:
    shut = [topic(COMES_MS, 4, "A", broker="a", perm=2)]
    both = topic(0, 4, "A"), topic(0, 4, "B")
    for language, left in (("CPP", 4), (None, 2)):
        members = [
            joins(at_ms, client_id, subscriptions=("A", "B"), language=its)
            for at_ms, client_id, its in ((0, "x", language), (COMES_MS + 200_000, "y", None))
        ]
        expected = ENDS_PASS if language else REGULAR
        assert reason_of(story(*both, *members, *shut)) == expected
        for future in futures(*both, *members, *shut, seeds=5):
            held = future.queues_of("x", COMES_MS + 300_000)
            assert sum(name.startswith("B/") for name in held) == left
