"""Rows of lists without padding that are what is left of others."""

import pytest

from rebalance_core.contracts.fact_declaration import GROUP
from rebalance_core.ingest.events.torn_lists import without_torn_rows
from rebalance_core.ingest.evidence import Evidence

WHOLE, OTHER = "10.3.0.31@24279#3063683029777", "10.1.0.11@22602#3011742525158"


def listed(
    file: str,
    *ids: str,
    unpadded: bool = True,
    address: str = "127.0.0.1:44448",
    topics: tuple[str, ...] = ("orders",),
) -> list[Evidence]:
    """A consumerConnection: its members, the line on the group, the dump itself."""
    own: dict[str, object] = {
        "client_addr": address,
        "subscriptions": tuple((topic, "*") for topic in topics),
    }
    own |= {"unpadded": True} if unpadded else {}
    return [
        *(
            _piece("member", f"{file}:{n}", {"client_id": one} | own)
            for n, one in enumerate(ids, 2)
        ),
        _piece("group_connection", file, {"members": len(ids)}),
        _piece("dump", file, {"command": "consumerConnection"}),
    ]


def _piece(kind: str, source: str, values: dict[str, object]) -> Evidence:
    return Evidence(GROUP, "g", kind, 9, "a", 0, source, values)


@pytest.mark.parametrize(
    "left",
    [".3.0.31@24279#3063683029777", "029777", "10.3.0.31@2427777", "10.3.0.31@24279#306368302977"],
    ids=["begins late", "hardly any", "its middle lost", "its end lost"],
)
def test_what_is_left_of_an_id_is_no_member_and_its_list_may_lack_some(left: str) -> None:
    whole, torn = listed("a.txt", WHOLE, OTHER), listed("b.txt", left, OTHER)
    kept = without_torn_rows([*whole, *torn])
    assert kept[:4] == whole
    assert [(piece.kind, piece.values.get("partial")) for piece in kept[4:]] == [
        ("member", True),
        ("dump", True),
    ]
    assert kept[4].values["client_id"] == OTHER


LOG = "brokers/a/broker.log:7"


def test_what_is_left_of_an_address_is_no_connection() -> None:
    """The broker's log has that of the member; another one is a connection that it lacks."""
    line = _piece("consumer_connected", LOG, {"client_id": WHOLE, "channel": "127.0.0.1:40024"})
    for address, kept in (("127.0.0.1:4024", 0), ("127.0.0.1:40024", 1), ("127.0.0.1:41024", 1)):
        pieces = [line, *listed("b.txt", WHOLE, address=address)]
        assert sum(one.kind == "member" for one in without_torn_rows(pieces)) == kept


@pytest.mark.parametrize(
    ("topics", "shown"), [(("ers",), ()), (("orders", "ers"), (("orders", "*"), ("ers", "*")))]
)
def test_topics_of_a_table_that_lost_characters_are_not_known(
    topics: tuple[str, ...], shown: tuple[tuple[str, str], ...]
) -> None:
    """Where the whole name stands there, too, the other one is a topic of its own."""
    other = listed("a.txt", WHOLE)
    kept = without_torn_rows([*other, *listed("b.txt", WHOLE, topics=topics)])
    assert kept[:3] == other
    assert kept[3].values["subscriptions"] == shown
    assert kept[3].values.get("partial", False) == (not shown)


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([*listed("a.txt", "h.1@x"), *listed("b.txt", "h.2@x")], id="another"),
        pytest.param(
            [*listed("a.txt", "10.0.0.11@x"), *listed("b.txt", "10.0.0.1@x", "10.0.0.11@x")],
            id="both stand in its list",
        ),
        pytest.param(
            [
                *listed("a.txt", "10.0.0.11@x"),
                *listed("b.txt", "10.0.0.1@x"),
                *listed("c.txt", "10.0.0.1@x"),
            ],
            id="two lists have it",
        ),
        pytest.param(
            [
                *listed("a.txt", "10.0.0.11@x"),
                *listed("b.txt", "10.0.0.1@x"),
                _piece("consumer_connected", LOG, {"client_id": "10.0.0.1@x"}),
            ],
            id="a log has it",
        ),
        pytest.param(
            [*listed("a.txt", "10.0.0.11@x"), *listed("b.txt", "10.0.0.1@x", unpadded=False)],
            id="its place shows that the row is whole",
        ),
    ],
)
def test_ids_that_are_whole(pieces: list[Evidence]) -> None:
    assert without_torn_rows(pieces) == pieces
