from rebalance_core.ingest.parse.mqadmin_topics import parse_server_config
from tests.unit.ingest.documents import codes, facts

# as GetBrokerConfigCommand.getAndPrint prints it: "%-50s=  %s"
ROWS = [("brokerName", "a"), ("msgTraceTopicName", "x=y"), ("slaveReadEnable", "true")]


def printed(head: str, *more: tuple[str, str]) -> str:
    return f"============{head}============\n" + "".join(
        f"{name:<50}=  {value}\n" for name, value in (*ROWS, *more)
    )


def test_a_broker_s_settings() -> None:
    text = printed("10.0.0.5:10911", ("brokerId", "1"), ("enableSlaveActingMaster", "false"))
    assert facts(parse_server_config(text, "f"), "server_settings") == [
        {"address": "10.0.0.5:10911",
         "settings": {"brokerName": "a", "slaveReadEnable": "true", "brokerId": "1",
                      "enableSlaveActingMaster": "false"}}
    ]  # fmt: skip


def test_a_whole_cluster() -> None:
    text = "\n".join(
        (
            printed("Master: 1.1.1.1:1", ("brokerId", "0")),
            printed("My Master: 1.1.1.1:1=====Slave: 1.1.1.2:1", ("brokerId", "1")),
            "============Master: NO_MASTER============",
            printed("My Master: NO_MASTER=====Slave: 1.1.1.3:1", ("brokerId", "1")),
        )
    )
    found = facts(parse_server_config(text, "f"), "server_settings")
    assert [(one["address"], one["settings"]["brokerId"]) for one in found] == [
        ("1.1.1.1:1", "0"), ("1.1.1.2:1", "1"), ("1.1.1.3:1", "1"),
    ]  # fmt: skip


def test_a_name_server() -> None:
    text = f"============10.0.0.1:9876============\n{'supportActingMaster':<50}=  true\n"
    (found,) = facts(parse_server_config(text, "f"), "server_settings")
    assert found["settings"] == {"supportActingMaster": "true"}


def test_what_is_no_such_output() -> None:
    assert codes(parse_server_config("hello\n", "f")) == ["UNPARSABLE_LINE"]
    cut = printed("1.1.1.1:1") + "slaveRead"
    assert codes(parse_server_config(cut, "f")) == ["UNPARSABLE_LINE"]
    cut = printed("1.1.1.1:1") + f"{'brokerId':<50}=  1"  # of 12, perhaps
    assert codes(parse_server_config(cut, "f")) == ["UNPARSABLE_LINE"]
    assert codes(parse_server_config("============1.1.1", "f")) == ["UNPARSABLE_LINE"]
    none = "============1.1.1.1:1============\nBroker[1.1.1.1:1] has no config property!\n"
    assert codes(parse_server_config(none, "f")) == []
