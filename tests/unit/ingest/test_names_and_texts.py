"""What the name of a file and its text say together."""

from pathlib import Path

from rebalance_core.audit.coverage import UNSURE_MS, coverage_of
from rebalance_core.contracts.observed import NAME_ALONE
from rebalance_core.ingest.collection import identify
from rebalance_core.ingest.evidence import Evidence
from rebalance_core.ingest.fact import Unread
from rebalance_core.ingest.file_reader import FileReader
from rebalance_core.ingest.piece import Piece
from tests.unit.ingest.parse.test_consumer_status import CLIENT, OLD, PROMPT
from tests.unit.ingest.skewed_clocks import ingested
from tests.unit.ingest.timed_lines import BEGIN_MS, PROGRESS, lines

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


def clients(pieces: list[Evidence | Unread]) -> set[str]:
    """Whose the queues are, and whose the dump is."""
    found = [piece for piece in pieces if isinstance(piece, Piece)]
    return {str(p.values.get("client_file")) for p in found if p.kind == "client_queue"} | {
        str(p.values["client_id"]) for p in found if p.kind == "dump"
    }


def test_running_info_in_a_file_named_after_the_group_is_its_client_s() -> None:
    assert clients(read(OF_THE_GROUP, CLIENT)) == {"10.0.2.11@31549#3178133647322"}
    assert clients(read(OF_THE_GROUP, PROMPT.format("10.0.0.1@7") + OLD)) == {"10.0.0.1@7"}
    own = OF_THE_GROUP.replace(".txt", "/10.0.0.3@8.txt")
    assert clients(read(own, CLIENT)) == {"10.0.0.3@8"}


def test_running_info_without_a_client_is_refused_whole() -> None:
    pieces = read(OF_THE_GROUP, OLD)
    (refused,) = [piece for piece in pieces if isinstance(piece, Unread)]
    assert (refused.source, refused.code) == (OF_THE_GROUP, "WRONG_FILE")
    assert "name the file after the client, mqadmin/1795233041598-consumerStatus-stock-sync/" in (
        refused.message
    )
    (dump,) = [piece for piece in pieces if isinstance(piece, Piece)]
    assert (dump.values["rows"], dump.values["rejected"]) == (0, 1)


def test_stats_of_all_groups_are_known_and_not_read() -> None:
    pieces = read("mqadmin/1795233041598-statsAll-notify-push.txt", STATS_ALL)
    assert [piece.kind for piece in pieces if isinstance(piece, Piece)] == ["dump"]
    assert not [piece for piece in pieces if isinstance(piece, Unread)]
    assert [p for p in read("mqadmin/1795233041598-nobodyKnows.txt", "") if isinstance(p, Unread)]


def test_documents_that_nothing_dates_have_the_time_of_their_name_alone(tmp_path: Path) -> None:
    """Bounds of starts that rest on their offsets cover every time of a clock set wrong."""
    files = {
        "brokers/a/broker.log": lines(*range(5)),
        f"mqadmin/{BEGIN_MS + 60_000}-consumerProgress-s-g.txt": PROGRESS,
    }
    tables = ingested(tmp_path, files)
    (row,) = (row for row in tables["coverage"] if row["role"] == "ADMIN")
    assert NAME_ALONE in row["note"]
    (moment,) = coverage_of(tables["coverage"], {"a": ["a"]}).named_error_ms.items()
    assert moment == (BEGIN_MS + 60_000, UNSURE_MS)
    assert not [*coverage_of(tables["coverage"], {"a": ["a"]}).clocks_of(["a"])]
    rules = {finding["rule_id"] for finding in tables["findings"]}
    assert "INGEST_CLOCK_OFFSET" not in rules
