"""Edits with ``each``, and brokers that come and go in order: equal to files written by hand."""

from pathlib import Path
from random import Random
from typing import Any

import pytest

from rebalance_core.model.errors import UsageError
from rebalance_core.planning.scenario.cluster_life import ClusterNames
from rebalance_core.planning.scenario.each import single_losses
from rebalance_core.planning.scenario.file import parse_scenario
from rebalance_core.planning.scenario.scenario import Loss, Scenario
from rebalance_core.synthetic.draws import Draws
from tests.unit.planning.scenario.edited_history import edit_history, names_in
from tests.unit.planning.scenario.groups import (
    CLUSTER,
    END_MS,
    GROUP,
    Row,
    dump,
    event,
    join,
    numbered,
    process,
    topic,
)

MEMBERS = {CLUSTER: [(GROUP, str(process(number)["client_id"])) for number in range(1, 5)]}


def read(edits: str, name: str = "s") -> Scenario:
    mistakes: list[str] = []
    text = f'name = "{name}"\ndescription = "d"\n{edits}'
    scenario = parse_scenario(text, "s.toml", mistakes)
    assert mistakes == []
    return scenario


def mistakes_of(edits: str) -> str:
    mistakes: list[str] = []
    parse_scenario(f'name = "s"\ndescription = "d"\n{edits}', "s.toml", mistakes)
    return "\n".join(mistakes)


def losses(edits: str, rows: list[Row]) -> dict[str, Scenario]:
    scenarios = single_losses(read(edits), names_in(rows), MEMBERS)
    return {scenario.name: scenario for scenario in scenarios}


def edited(scenario: Scenario, rows: list[Row], seed: int = 0) -> tuple[Row, ...]:
    return edit_history(scenario, rows, seed=seed).rows


FILES = {
    '[[edit]]\nkind = "lose_broker"\neach = "broker"\nhow = "expired"': {
        "s/a": '[[edit]]\nkind = "lose_broker"\nbroker = "a"\nhow = "expired"',
        "s/b": '[[edit]]\nkind = "lose_broker"\nbroker = "b"\nhow = "expired"',
    },
    '[[edit]]\nkind = "lose_master"\neach = "master"\nback_after = "5m"': {
        "s/a": '[[edit]]\nkind = "lose_master"\nbroker = "a"\nback_after = "5m"',
        "s/b": '[[edit]]\nkind = "lose_master"\nbroker = "b"\nback_after = "5m"',
    },
    '[[edit]]\nkind = "drain_broker"\neach = "broker"\nbroker = "b*"': {
        "s/b": '[[edit]]\nkind = "drain_broker"\nbroker = "b"',
    },
    '[[edit]]\nkind = "lose_room"\neach = "host"\nback_after = "1m"': {
        f"s/10.0.0.{n}": '[[edit]]\nkind = "lose_room"\nroom = "x"\nback_after = "1m"\n'
        f'broker_prefixes = "none"\nclient_prefixes = "10.0.0.{n}@"'
        for n in range(1, 5)
    },
    '[[edit]]\nkind = "remove_consumers"\neach = "member"\ngroup = "g"\nhow = "crash"': {
        f"s/{client_id}": '[[edit]]\nkind = "remove_consumers"\ngroup = "g"\nhow = "crash"\n'
        f'client_id = "{client_id}"'
        for _, client_id in MEMBERS[CLUSTER]
    },
}


@pytest.mark.parametrize("each", FILES)
@pytest.mark.parametrize("more", ["", '\n[[edit]]\nkind = "add_consumers"\ngroup = "g"\ncount = 2'])
def test_each_stands_for_files_written_by_hand(each: str, more: str) -> None:
    rows = dump(members=4)
    found = losses(each + more, rows)
    assert list(found) == list(FILES[each])
    for name, text in FILES[each].items():
        by_hand = read(text + more, name)
        for seed in range(3):
            assert edited(found[name], rows, seed) == edited(by_hand, rows, seed)
        assert len(edited(by_hand, rows)) > len(rows)


def test_of_several_clusters_each_object_is_lost_alone() -> None:
    rows = dump()
    rows += [row | {"cluster": "d"} for row in rows]
    found = losses('[[edit]]\nkind = "lose_broker"\neach = "broker"', rows)
    assert list(found) == ["s/c/a", "s/c/b", "s/d/a", "s/d/b"]
    assert found["s/d/a"].loss == Loss("broker", "d", "a")
    (down,) = [row for row in edited(found["s/d/a"], rows) if row["event_type"] == "BROKER_DOWN"]
    assert (down["cluster"], down["broker_name"]) == ("d", "a")


def test_zones_and_nodes_are_those_of_the_file(tmp_path: Path) -> None:
    places = tmp_path / "pods.csv"
    places.write_text(
        "zone,pod,node\nz1,10.0.0.1,n1\nz1,10.0.0.2,n2\nz2,10.0.0.3,n3\nz2,a,n3\nz3,other,n9\n"
    )
    table = f'[[edit]]\nkind = "lose_room"\nplaces = "{places}"\neach = '
    zones = losses(f'{table}"zone"', dump())
    assert list(zones) == ["s/z1", "s/z2"]
    lost = {
        row["client_id"]
        for row in edited(zones["s/z1"], dump())
        if row["event_type"] == "CONSUMER_LOST"
    }
    assert lost == {process(1)["client_id"], process(2)["client_id"]}
    down = [
        row["broker_name"]
        for row in edited(zones["s/z2"], dump())
        if row["event_type"] == "BROKER_DOWN"
    ]
    assert down == ["a"]
    assert list(losses(f'{table}"host"', dump())) == ["s/n1", "s/n2", "s/n3"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("pod,zone\na,b\n", "has no column node; expected pod, node, zone"),
        ("pod,node,zone\n,n,z\n", "line 2 names no pod"),
        ("pod,node,zone\na,n,z\na,n,y\n", "line 3 places a a second time"),
    ],
)
def test_a_wrong_file_of_places_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "pods.csv"
    path.write_text(text)
    edit = f'[[edit]]\nkind = "lose_room"\neach = "zone"\nplaces = "{path}"'
    assert said in mistakes_of(edit)


BROKERS = 'kind = "lose_broker"\neach = "broker"'


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ('kind = "lose_broker"', "s.toml:4: lose_broker needs broker or each"),
        ('kind = "lose_master"\neach = "broker"', "expected one of master"),
        ('kind = "lose_room"\neach = "zone"', 'each = "zone" needs places'),
        ('kind = "lose_room"\neach = "host"\nroom = "x"', "room excludes each"),
        ('kind = "lose_room"\neach = "host"\nat = "-1h"', "at is before the end"),
        ('kind = "lose_room"', "lose_room needs room or each"),
        ('kind = "add_broker"', "add_broker needs name"),
        (f"{BROKERS}\n[[edit]]\n{BROKERS}", "s.toml:8: another edit already has each"),
    ],
)
def test_a_wrong_edit_is_refused(edit: str, said: str) -> None:
    assert said in mistakes_of(f"[[edit]]\n{edit}\n")


def test_without_an_object_nothing_would_be_lost() -> None:
    with pytest.raises(UsageError, match='each = "broker" finds no broker to lose'):
        single_losses(
            read('[[edit]]\nkind = "lose_broker"\neach = "broker"\nbroker = "x*"'),
            {CLUSTER: ClusterNames(brokers={"a"})},
            {},
        )


def test_a_history_has_one_loss() -> None:
    with pytest.raises(UsageError, match="an edit with each expands to several scenarios"):
        edited(read(f"[[edit]]\n{BROKERS}"), dump())


def without_source(rows: tuple[Row, ...]) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if k not in ("source", "sequence")} for row in rows]


def random_topics(draws: Draws) -> list[Row]:
    """Topics of any size on two of three brokers, changed once more an hour after the dump."""
    rows = [event(END_MS, "BROKER_UP", broker_name=name, version="5.3.3") for name in "abc"]
    rows += [
        topic(END_MS + later, draws.between(0, 9), name, broker)
        for later in (0, 3_600_000)
        for name in ("T", "U")
        for broker in draws.shuffled(["a", "b", "c"])[:2]
    ]
    return numbered([*rows, *(join(END_MS, number, subscriptions=["T", "U"]) for number in (1, 2))])


@pytest.mark.parametrize("at", ["-30m", "+10m"])
def test_a_drain_is_three_steps(at: str) -> None:
    second = {"-30m": ("-10m", "end"), "+10m": ("+30m", "+35m")}[at]
    off = '[[edit]]\nkind = "scale_queues"\ntopic = "*"\nbroker = "b"\n'
    by_hand = (
        f'{off}at = "{at}"\nwrite = 0\n{off}at = "{second[0]}"\nqueues = 0\n'
        f'[[edit]]\nkind = "lose_broker"\nat = "{second[1]}"\nbroker = "b"\nhow = "stopped"'
    )
    stop = {"-30m": "600001ms", "+10m": "5m"}[at]
    drain = (
        f'[[edit]]\nkind = "drain_broker"\nat = "{at}"\nbroker = "b"\nread_within = "20m"\n'
        f'stop_after = "{stop}"'
    )
    seed = Random().randrange(1 << 30)
    for number in range(20):
        rows = random_topics(Draws(seed, "topics", number))
        one, other = (without_source(edited(read(text), rows)) for text in (drain, by_hand))
        assert one == other, (seed, number)


def test_a_new_broker_has_the_queues_of_another_and_takes_writes() -> None:
    rows = numbered([*dump(members=2, queues=4), topic(END_MS, 6, "U", "b")])
    edit = '[[edit]]\nkind = "add_broker"\nname = "c"\nlike = "b"\nat = "+1m"\n'
    found = edited(read(edit + 'writes_from = "a"'), rows)[len(rows) :]
    assert [row["event_type"] for row in found] == ["BROKER_UP", *["TOPIC_CONFIG"] * 3]
    assert found[0]["version"] == "5.3.3"
    configs = {
        (row["topic"], row["broker_name"]): (row["read_queue_nums"], row["write_queue_nums"])
        for row in found[1:]
    }
    assert configs == {("T", "c"): (4, 4), ("U", "c"): (6, 6), ("T", "a"): (4, 0)}
    again = edited(read(edit.replace('"c"', '"a"')), rows)
    assert len(again) == len(rows)
    warned = edit_history(read(edit.replace('"c"', '"a"')), rows).warnings
    assert warned == ("s#1: c already has a broker a",)
    twelve = edited(read(edit + 'queues = 12\ntopic = "U"'), rows)[len(rows) :]
    assert [(row["topic"], row["read_queue_nums"]) for row in twelve] == [(None, None), ("U", 12)]
