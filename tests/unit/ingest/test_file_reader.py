"""What a file's name and its text say together."""

from rebalance_core.ingest.collection import identify
from rebalance_core.ingest.evidence import Evidence
from rebalance_core.ingest.fact import Unread
from rebalance_core.ingest.file_reader import FileReader
from tests.unit.ingest.parse.mqadmin.test_consumer_status import CLIENT, OLD, PROMPT

OF_THE_GROUP = "mqadmin/1795233041598-consumerStatus-stock-sync.txt"
STATS_ALL = """\
OpenJDK 64-Bit Server VM warning: ignoring option PermSize=128m; support was removed in 8.0
#Topic                            #Consumer Group                  #Accumulation      #InTPS
notify-push                       notify-push-old                          1674        0.00
"""


def read(name: str, text: str) -> list[Evidence | Unread]:
    file = identify(name)
    assert file is not None
    return list(FileReader(file, "UTC", ()).read_document(text))


def clients(pieces: list[Evidence | Unread]) -> set[str | None]:
    """Whose the queues are, and whose the dump is."""
    found = [piece for piece in pieces if isinstance(piece, Evidence)]
    return {p.values.get("client_file") for p in found if p.kind == "client_queue"} | {
        p.values["client_id"] for p in found if p.kind == "dump"
    }


def test_running_info_in_a_file_named_after_the_group_is_its_client_s() -> None:
    assert clients(read(OF_THE_GROUP, CLIENT)) == {"10.0.2.11@31549#3178133647322"}
    assert clients(read(OF_THE_GROUP, PROMPT.format("10.0.0.1@7") + OLD)) == {"10.0.0.1@7"}
    own = OF_THE_GROUP.replace(".txt", "/10.0.0.3@8.txt")
    assert clients(read(own, CLIENT)) == {"10.0.0.3@8"}


def test_running_info_of_nobody_is_refused_whole() -> None:
    pieces = read(OF_THE_GROUP, OLD)
    (refused,) = [piece for piece in pieces if isinstance(piece, Unread)]
    assert (refused.source, refused.code) == (OF_THE_GROUP, "WRONG_FILE")
    assert "name the file after the client, mqadmin/1795233041598-consumerStatus-stock-sync/" in (
        refused.message
    )
    (dump,) = [piece for piece in pieces if isinstance(piece, Evidence)]
    assert (dump.values["rows"], dump.values["rejected"]) == (0, 1)


def test_stats_of_all_groups_are_known_and_not_read() -> None:
    pieces = read("mqadmin/1795233041598-statsAll-notify-push.txt", STATS_ALL)
    assert [piece.kind for piece in pieces if isinstance(piece, Evidence)] == ["dump"]
    assert not [piece for piece in pieces if isinstance(piece, Unread)]
    assert [p for p in read("mqadmin/1795233041598-nobodyKnows.txt", "") if isinstance(p, Unread)]
