"""Facts of dumps: the group and the request are in the name of the file."""

from typing import Any

import pytest

from rebalance_core.ingest.collection import CollectedFile, identify
from rebalance_core.ingest.evidence import dump_fact
from rebalance_core.ingest.fact import Unread
from rebalance_core.ingest.file_reader import ADMIN_PARSERS

PROGRESS = """\
#Topic  #Broker Name                      #QID  #Broker Offset        #Consumer Offset      \
{}#Diff                #Inflight           #LastTime
T       b                                 0     3                     1                     \
{}2                    0                    N/A

Consume TPS: 0.00
Consume Diff Total: 2
Consume Inflight Total: 0
"""
NO_CLIENT, CLIENT = ("", ""), (f"{'#Client IP':<20} ", f"{'10.0.0.1':<20} ")
STACK = (
    "org.apache.rocketmq.tools.command.SubCommandException: ConsumerProgressSubCommand failed\n"
    "\tat org.apache.rocketmq.tools.command.Main(Main.java:1)\n"
    "Caused by: org.apache.rocketmq.client.exception.MQBrokerException: CODE: 17  DESC: no route\n"
)


def dump(name: str, text: str) -> dict[str, Any]:
    file = identify(f"mqadmin/1795232851000-{name}")
    assert isinstance(file, CollectedFile)
    found = ADMIN_PARSERS[file.arguments[0]](text, file.name)
    fact = dump_fact(file, found, ("b", "a-b"))
    assert fact.at_ms == 1795232851000
    return dict(fact.values)


@pytest.mark.parametrize(
    ("name", "text", "group"),
    [
        ("consumerProgress-s-config.txt", PROGRESS.format(*NO_CLIENT), "s-config"),
        ("consumerProgress-s-config.txt", PROGRESS.format(*CLIENT), "config"),
        ("consumerProgress-g.txt", "", "g"),
        ("consumerProgress-s-g.txt", "", "g"),
        ("consumerProgress-all.txt", "", None),
        ("consumerProgress.txt", "", None),
        ("consumerProgress-t-T-g.txt", "", None),
        ("consumerProgress-t-T-g.txt", PROGRESS.format(*NO_CLIENT), "g"),
        ("consumerProgress-s-t-T-g.txt", "", None),
        ("consumerStatus-g/c@1.txt", "", "g"),
        ("consumerConnection-g-a-b.txt", "", "g"),
        ("topicRoute-T.txt", "", None),
    ],
)
def test_the_group_follows_from_the_name(name: str, text: str, group: str | None) -> None:
    assert dump(name, text)["group"] == group


def test_what_was_asked_for_follows_from_the_name() -> None:
    assert dump("consumerConnection-g-a-b.txt", "")["broker"] == "a-b"
    assert dump("topicStatus-T.txt", "")["topic"] == "T"
    assert dump("consumerStatus-g/c@1.txt", "")["client_id"] == "c@1"


def test_rows_and_errors_are_counted_and_named() -> None:
    rows = dump("consumerProgress-g.txt", PROGRESS.format(*NO_CLIENT))
    assert (rows["rows"], rows["rejected"], rows["error"], rows["cut_off"]) == (1, 0, "", False)
    cut = dump("consumerProgress-g.txt", PROGRESS.format(*NO_CLIENT).partition("Consume TPS")[0])
    assert (cut["rows"], cut["rejected"], cut["cut_off"]) == (1, 1, True)
    nothing = dump("consumerConnection-g-b.txt", "")
    assert (nothing["rows"], nothing["rejected"], nothing["error"]) == (0, 0, "")
    failed = dump("consumerProgress-g.txt", STACK)
    assert failed["rows"] == 0
    assert failed["error"].startswith(
        "org.apache.rocketmq.client.exception.MQBrokerException CODE 17"
    )
    odd = dump_fact(
        CollectedFile("f", "mqadmin", arguments=("topicList", "")), [Unread("f", "", "", "")], ()
    )
    assert (odd.values["rows"], odd.values["rejected"]) == (0, 1)


def test_a_refusal_names_the_group_where_the_broker_asked_is_not_known() -> None:
    refusal = (
        "org.apache.rocketmq.client.exception.MQBrokerException: CODE: 206  DESC: the consumer "
        "group[g-push] not online\n"
    )
    values = dump("consumerConnection-g-push-proxy-1.txt", refusal)
    assert (values["group"], values["broker"]) == ("g-push", "")


def test_the_retry_topic_names_the_group_where_the_broker_asked_is_not_known() -> None:
    table = (
        "#ClientId                            #ClientAddr            #Language  #Version\n"
        "c@1                                  1.1.1.1:1              JAVA       V5_5_0\n\n"
        "Below is subscription:\n#Topic               #SubExpression\n"
        "%RETRY%g-x           *\nT                    *\n\nConsumeType: CONSUME_PASSIVELY\n"
    )
    for name, group, broker in (
        ("g-x-a-b", "g-x", "a-b"),
        ("g-x-host17", "g-x", None),
        ("g-x", "g-x", None),
        ("other-host17", "other-host17", None),
    ):
        values = dump(f"consumerConnection-{name}.txt", table)
        assert (values["group"], values["broker"] or None) == (group, broker), name
