"""The profiles of clients against what was found by running and reading them (behaviour.tsv)."""

import csv
import dataclasses
import re
from pathlib import Path

import pytest

from rebalance_core.model.client_profile import ClientProfile
from rebalance_core.model.clients import (
    JAVA_PROFILE,
    PROFILES,
    is_java,
    is_modelled,
    profile_of,
    rules_version,
    window_intervals,
)
from rebalance_core.model.errors import UsageError
from rebalance_core.model.events import Event
from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.model.languages import (
    CPP,
    DOTNET,
    GO,
    JAVA,
    LANGUAGES,
    NODE,
    NODE_JS,
    PYTHON,
    RUST,
    parse_language,
)
from rebalance_core.protocol.settling_windows import window_ms
from rebalance_core.strategies.texts import own_strategy

with (Path(__file__).parent / "behaviour.tsv").open(encoding="utf-8") as found:
    RULES = list(csv.DictReader(found, delimiter="\t", quoting=csv.QUOTE_NONE))

GO_1, GO_OLD, GO_2_1_1, GO_NEW, GO_ANY = PROFILES[GO]
(CPP_ANY,), (NODE_ANY,), (RUST_OLD, RUST_ANY) = PROFILES[CPP], PROFILES[NODE], PROFILES[RUST]
DOTNET_2, DOTNET_3, DOTNET_ANY = PROFILES[DOTNET]
EACH_GO = (GO_OLD, GO_2_1_1, GO_NEW, GO_ANY)
EACH_DOTNET = (DOTNET_2, DOTNET_3, DOTNET_ANY)

HELD: tuple[tuple[str, str, str, str, tuple[ClientProfile, ...], str, object], ...] = (
    # language, item, versions, words of the rule, profiles, attribute, its value
    (GO, "order of ids and queues", "", "bytes of UTF-8", EACH_GO, "order", "BYTES"),
    (GO, "CONSISTENT_HASH(n)", "", "ring of CRC-32", EACH_GO, "strategies", "GO"),
    (GO, "MACHINE_ROOM(rooms)", "", "cut out of ALL queues", EACH_GO, "strategies", "GO"),
    (GO, "MACHINE_ROOM_NEARBY", "", "AVG, rooms are ignored", EACH_GO, "strategies", "GO"),
    (GO, "broker answers the list", "", "lets go of EVERY queue", EACH_GO, "empty_list", "DROP"),
    (GO, "topic without a readable", "", "lets go of every queue", EACH_GO, "no_queue", "DROP"),
    (GO, "passes", "", "every 20 s, at once on NOTIFY", EACH_GO, "pass_ms", 20_000),
    (GO, "passes", "", "at once on NOTIFY", EACH_GO, "notified", True),
    (GO, "%RETRY%", "", "subscribed", EACH_GO, "retry", True),
    (GO, "orderly", "", "is NOT unlocked (free 60 s after", EACH_GO, "locks", "KEPT"),
    (GO, "start", "2.0.0-2.1.0", "any failure", (GO_OLD,), "start", "NO_ANSWER_IS_NO_COMMIT"),
    (GO, "start on %RETRY%", "2.0.0", "not taken", (GO_OLD,), "start", "NO_ANSWER_IS_NO_COMMIT"),
    (GO, "start without a", "2.1.1", "NOT taken", (GO_2_1_1,), "start", "NEVER_WITHOUT_COMMIT"),
    (GO, "start", "2.1.2-2.1.3pre", "as Java 5.x", (GO_NEW,), "start", "AS_JAVA"),
    (GO, "what brokers print", "", "whatever the version", EACH_GO, "reports_version", False),
    (CPP, "strategy", "", "AVG only", (CPP_ANY,), "strategies", "AVG_ONLY"),
    (CPP, "order", "", "bytes", (CPP_ANY,), "order", "BYTES"),
    (
        CPP,
        "no list, empty list, no readable queue",
        "",
        "throws: keeps",
        (CPP_ANY,),
        "empty_list",
        "KEEP",
    ),
    (
        CPP,
        "no list, empty list, no readable queue",
        "",
        "throws: keeps",
        (CPP_ANY,),
        "no_queue",
        "FREEZE",
    ),
    (
        CPP,
        "no list, empty list, no readable queue",
        "",
        "the pass ends there",
        (CPP_ANY,),
        "ends_pass",
        True,
    ),
    (CPP, "passes", "", "every 10 s, at once on the notice", (CPP_ANY,), "pass_ms", 10_000),
    (CPP, "passes", "", "at once on the notice", (CPP_ANY,), "notified", True),
    (CPP, "%RETRY%", "", "subscribed", (CPP_ANY,), "retry", True),
    (CPP, "start", "", "count as none", (CPP_ANY,), "start", "NO_ANSWER_IS_NO_COMMIT"),
    (CPP, "orderly", "", "given up: unlocked", (CPP_ANY,), "locks", "UNLOCKED"),
    (NODE, "strategy, order", "", "UTF-16 like Java", (NODE_ANY,), "order", "UTF16"),
    (NODE, "strategy, order", "", "AVG (exchangeable)", (NODE_ANY,), "strategies", "JAVA"),
    (NODE, "passes", "", "every 10 s", (NODE_ANY,), "pass_ms", 10_000),
    (NODE, "passes", "", "no handler of the notice", (NODE_ANY,), "notified", False),
    (NODE, "empty list, no", "", "keeps", (NODE_ANY,), "empty_list", "KEEP"),
    (NODE, "empty list, no", "", "keeps", (NODE_ANY,), "no_queue", "FREEZE"),
    (NODE, "orderly", "", "none", (NODE_ANY,), "locks", "NONE"),
    (NODE, "what brokers print", "", "version=121", (NODE_ANY,), "reports_version", False),
    (RUST, "all six strategies", "", "as Java bit for bit", (RUST_ANY,), "strategies", "JAVA"),
    (RUST, "pass", "1.0.0", "20 s", (RUST_ANY,), "pass_ms", 20_000),
    (RUST, "pass", "1.0.0", "bytes order", (RUST_ANY,), "order", "BYTES"),
    (DOTNET, "order of ids", "", "the CULTURE's order", EACH_DOTNET, "order", "CULTURE"),
    (DOTNET, "several topics", "3.0", "ONE division", (DOTNET_3,), "each_topic", False),
    (DOTNET, "%RETRY%", "", "NOT subscribed", EACH_DOTNET, "retry", False),
    (DOTNET, "start", "", "WITHOUT the topic", EACH_DOTNET, "start", "ANOTHER"),
    (DOTNET, "passes", "", "then 60 s", EACH_DOTNET, "pass_ms", 60_000),
    (DOTNET, "passes", "", "at once on the notice", EACH_DOTNET, "notified", True),
)
ORDERS_RUN = {GO, CPP, NODE}
"""Rust's is marked read: its strategies were run on lists, not the pass that sorts them; .NET's was
run on its library for sorting, not in a client."""


def rule_of(language: str, item: str, versions: str) -> dict[str, str]:
    """The one row."""
    (row,) = (
        row
        for row in RULES
        if row["language"] == language
        and (row["item"] == item or row["item"].startswith(f"{item} "))
        and row["versions"].startswith(versions)
        and (item != "start" or row["item"] == "start")
    )
    return row


@pytest.mark.parametrize(
    ("language", "item", "versions", "words", "profiles", "name", "value"), HELD
)
def test_each_profile_states_what_was_found(
    language: str,
    item: str,
    versions: str,
    words: str,
    profiles: tuple[ClientProfile, ...],
    name: str,
    value: object,
) -> None:
    assert words in rule_of(language, item, versions)["rule"]
    assert {getattr(profile, name) for profile in profiles} == {value}


@pytest.mark.parametrize(
    ("language", "item", "versions", "words", "profiles", "name", "value"), HELD
)
def test_what_was_only_read_is_marked(
    language: str,
    item: str,
    versions: str,
    words: str,
    profiles: tuple[ClientProfile, ...],
    name: str,
    value: object,
) -> None:
    found = rule_of(language, item, versions)["known by"]
    run = "run" in re.split(r"\W+", found)
    if name == "order" and language in ORDERS_RUN:
        run = True
    if (language, name) == (DOTNET, "order"):
        run = False
    if (language, name) == (NODE, "notified"):
        assert "notice read" in found
        run = False
    if (language, name) in ((CPP, "empty_list"), (CPP, "no_queue"), (CPP, "ends_pass")):
        assert "read (the throw run)" in found
        run = False
    for profile in profiles:
        assert (name not in profile.read) == run or name == "reports_version"


READ: tuple[tuple[str, str, str, tuple[ClientProfile, ...], tuple[str, ...]], ...] = (
    # language, versions and item of a row that is marked read; profiles; what they mark as read
    (GO, "2.0.0", "start on %RETRY% without a commit, LAST", (GO_OLD,), ("start",)),
    (GO, "2.0.0-2.1.0", "start", (GO_OLD,), ("start",)),
    (GO, "2.0.0-2.1.3pre", "CONSUME_FROM_TIMESTAMP", (GO_NEW, GO_OLD, GO_ANY), ()),
    (
        CPP,
        "1.2.0-HEAD",
        "no list, empty list, no readable queue",
        (CPP_ANY,),
        ("empty_list", "no_queue", "ends_pass"),
    ),
    (CPP, "1.2.0-HEAD", "start", (CPP_ANY,), ()),
    (CPP, "1.2.0-HEAD", "orderly", (CPP_ANY,), ("locks",)),
    (CPP, ">=1.2.5", "client id, version", (CPP_ANY,), ()),
    (NODE, "ali-ons 3.12.0", "passes", (NODE_ANY,), ("notified",)),
    (NODE, "ali-ons 3.12.0", "empty list, no readable queue", (NODE_ANY,),
     ("empty_list", "no_queue")),
    (NODE, "ali-ons 3.12.0", "orderly", (NODE_ANY,), ("locks",)),
    (RUST, "0.3-0.8", "CONSISTENT_HASH", (RUST_OLD,), ()),
    (RUST, "1.0.0", "pass", (RUST_ANY,), ("pass_ms", "notified", "order")),
    (DOTNET, "NewLife.RocketMQ 2.0 (2022) - 3.1 (2026-07)", "order of ids", EACH_DOTNET,
     ("order",)),
    (DOTNET, "3.0 and newer", "several topics", EACH_DOTNET, ("each_topic",)),
    (DOTNET, "2.0-3.1", "list of members", EACH_DOTNET, ("empty_list",)),
    (DOTNET, "2.0-3.1", "%RETRY%", EACH_DOTNET, ("retry",)),
    (DOTNET, "2.0-3.1", "start", EACH_DOTNET, ("start",)),
    (DOTNET, "2.0-3.1", "passes", EACH_DOTNET, ("pass_ms", "notified")),
)  # fmt: skip
STRATEGIES = (
    "AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH(virtual_nodes=10)", "MACHINE_ROOM(consumer_idcs=a)",
    "MACHINE_ROOM_NEARBY-AVG",
)  # fmt: skip
MODES = ("CONSUME_FROM_LAST_OFFSET", "CONSUME_FROM_FIRST_OFFSET", "CONSUME_FROM_TIMESTAMP")


def test_no_row_that_was_only_read_is_left_out() -> None:
    """gRPC's clients divide nothing; all others of them say what they leave open."""
    read = {
        (row["language"], row["versions"], row["item"])
        for row in RULES
        if re.search(r"\bread\b", row["known by"])
    }
    held = {(language, versions, item) for language, versions, item, *_ in READ}
    assert {row for row in read if row[0] != "gRPC"} == held
    for *_, profiles, names in READ:
        assert all(profile.read >= {*names} for profile in profiles)


def test_starts_that_were_only_read_are_known_in_no_mode_but_the_one_that_was_run() -> None:
    known = {
        (language, place): [mode for mode in MODES if profile.start_known(mode)]
        for language, profiles in PROFILES.items()
        for place, profile in enumerate(profiles)
    }
    assert {key: modes for key, modes in known.items() if modes} == {
        (GO, 2): [*MODES],  # 2.1.1 does not take such a queue
        (GO, 3): ["CONSUME_FROM_LAST_OFFSET"],
        (CPP, 0): ["CONSUME_FROM_LAST_OFFSET"],
    }


def test_shares_are_known_by_the_strategies_that_were_run() -> None:
    """Of Node only AVG was; its users may have given it any other."""
    known = {
        (language, place): [text for text in STRATEGIES if profile.share_known(text)]
        for language, profiles in PROFILES.items()
        for place, profile in enumerate(profiles)
    }
    every = [*STRATEGIES]
    assert known == {
        (GO, 0): [],
        (GO, 1): every,
        (GO, 2): every,
        (GO, 3): every,
        (GO, 4): every,
        (CPP, 0): every,
        (NODE, 0): ["AVG"],
        (RUST, 0): [],
        (RUST, 1): every,
        (DOTNET, 0): [],
        (DOTNET, 1): [],
        (DOTNET, 2): [],
    }


def window(language: str | None, **group: int) -> tuple[int, int]:
    """Windows of a join and of a route, in ms."""
    joins = Event(0, 0, "CONSUMER_JOIN", client_id="x", language=language)
    its = window_intervals(GroupSettings(**group), joins)  # type: ignore[arg-type]
    return window_ms(joins, its), window_ms(Event(0, 0, "TOPIC_CONFIG"), its)


@pytest.mark.parametrize(
    ("language", "told_ms", "routed_ms"),
    [
        (None, 3_000, 53_000),
        (GO, 3_000, 53_000),
        (CPP, 3_000, 43_000),  # it passes every 10 s, and on notice: both were run
        (NODE, 12_000, 42_000),  # the notice was read: at the latest its next pass
        (RUST, 22_000, 52_000),  # so was Rust's
        (DOTNET, 62_000, 92_000),
    ],
)
def test_windows_last_until_the_pass_that_was_seen(
    language: str | None, told_ms: int, routed_ms: int
) -> None:
    assert window(language) == (told_ms, routed_ms)
    own = (told_ms, routed_ms) if language else (3_000, 38_000)
    assert window(language, wait_interval_ms=5_000) == own


def test_a_start_that_was_run_in_one_mode_is_known_in_that_mode() -> None:
    for language, versions, profile in ((GO, "2.1.2", GO_NEW), (CPP, "", CPP_ANY)):
        assert "LAST run" in rule_of(language, "start", versions)["known by"]
        assert profile.start_known("CONSUME_FROM_LAST_OFFSET")
        assert not profile.start_known("CONSUME_FROM_TIMESTAMP")
    assert JAVA_PROFILE.start_known("CONSUME_FROM_TIMESTAMP")
    assert not GO_OLD.start_known("CONSUME_FROM_LAST_OFFSET")
    assert not GO_ANY.start_known("CONSUME_FROM_LAST_OFFSET")


def test_every_attribute_of_every_profile_is_held_to_a_row_or_is_javas() -> None:
    held = {(id(profile), name) for *_, profiles, name, _ in HELD for profile in profiles}
    reported = {"language", "releases", "read", "starts_run", "strategies_run", "reports_version"}
    for profiles in PROFILES.values():
        for profile in profiles:
            for field in dataclasses.fields(ClientProfile):
                own = getattr(profile, field.name)
                if field.name in reported or (id(profile), field.name) in held:
                    continue
                # Nothing was found of it: as Java, or marked as not run.
                assert (
                    own == getattr(JAVA_PROFILE, field.name)
                    or field.name in profile.read
                    or (own == "ANOTHER")
                )


def test_the_versions_that_brokers_print_say_nothing() -> None:
    assert "version=317 (V4_5_2)" in rule_of(GO, "what brokers print", "")["rule"]
    assert "version=121 (V3_4_9)" in rule_of(NODE, "what brokers print", "")["rule"]
    printed = " ".join(row["rule"] for row in RULES if row["language"] == CPP)
    assert "V3_1_8" in printed
    assert "V4_6_0" in printed
    for language, profiles in PROFILES.items():
        for version in ("4.5.2", "4.6.0", "4.9.7", "5.3.1"):
            assert profile_of(language, version) is profiles[-1]


@pytest.mark.parametrize(
    ("language", "version", "profile"),
    [
        (GO, "2.0.0", GO_OLD),
        (GO, "v2.1.0", GO_OLD),
        (GO, "2.1.1", GO_2_1_1),
        (GO, "2.1.2", GO_NEW),
        (GO, "2.1.3-0.20251226070945", GO_NEW),
        (GO, "1.2.4", GO_1),
        (GO, None, GO_ANY),
        (CPP, "2.2.0", CPP_ANY),
        (PYTHON, "2.0.0", CPP_ANY),
        (NODE_JS, None, NODE_ANY),
        (RUST, "0.8.0", RUST_OLD),
        (RUST, "1.0.0", RUST_ANY),
        (RUST, "5.3.1", RUST_ANY),
        (DOTNET, "2.9.2022", DOTNET_2),
        (DOTNET, "3.1", DOTNET_3),
        (DOTNET, "4.9.7", DOTNET_ANY),
        (JAVA, "5.3.3", JAVA_PROFILE),
        (None, "5.3.3", JAVA_PROFILE),
        ("ERLANG", "1.0", JAVA_PROFILE),
    ],
)
def test_the_release_decides(language: str | None, version: str, profile: ClientProfile) -> None:
    assert profile_of(language, version) is profile


@pytest.mark.parametrize(
    ("language", "text", "own"),
    [
        (GO, "AVG_BY_CIRCLE", "AVG_BY_CIRCLE"),
        (GO, "CONSISTENT_HASH", "GO_CONSISTENT_HASH(virtual_nodes=10)"),
        (GO, "GO_CONSISTENT_HASH(virtual_nodes=3)", "GO_CONSISTENT_HASH(virtual_nodes=3)"),
        (GO, "MACHINE_ROOM(consumer_idcs=b|a)", "GO_MACHINE_ROOM(consumer_idcs=b|a)"),
        (GO, "MACHINE_ROOM(consumer_idcs=a|a)", "GO_MACHINE_ROOM(consumer_idcs=a|a)"),
        (GO, "MACHINE_ROOM", "GO_MACHINE_ROOM"),
        (GO, "MACHINE_ROOM_NEARBY-AVG", "AVG"),
        (RUST, "CONSISTENT_HASH(virtual_nodes=7)", "CONSISTENT_HASH(virtual_nodes=7)"),
        (CPP, "CONSISTENT_HASH(virtual_nodes=7)", "AVG"),
        (PYTHON, "AVG_BY_CIRCLE", "AVG"),
        ("PHP", " CONSISTENT_HASH ", " CONSISTENT_HASH "),
    ],
)
def test_a_member_divides_by_what_its_client_makes_of_the_groups(
    language: str, text: str, own: str
) -> None:
    assert own_strategy(profile_of(language), text) == own


def test_a_language_that_is_none_names_the_nearest() -> None:
    assert all(parse_language(text) == text for text in LANGUAGES)
    with pytest.raises(UsageError, match="did you mean GO"):
        parse_language("go")


def test_a_language_of_which_nothing_is_known_is_taken_as_java() -> None:
    assert [text for text in LANGUAGES if not is_modelled(text)] == [
        "DELPHI",
        "ERLANG",
        "RUBY",
        "OTHER",
        "HTTP",
        "PHP",
        "OMS",
    ]
    assert is_java("PHP")
    assert not is_java("GO")
    assert rules_version("JAVA", "5.3.3") == rules_version(None, "5.3.3") == "5.3.3"
