"""What is known of a group's commits."""

from dataclasses import replace

from rebalance_core.audit.orphans import Offsets
from rebalance_core.model.queue import MessageQueue
from tests.unit.audit.cases import case_of, commit, fact, join, topic


def test_a_broker_that_found_no_commit_tells_as_much_as_its_store() -> None:
    queues = [MessageQueue("T", "a", 0), MessageQueue("T", "a", 1)]
    told = [fact("NOTHING_COMMITTED", 500, topic="T", broker_name="a", queue_id=n, log="go")
            for n in (0, 1)]  # fmt: skip
    for facts, said in (([], "unknown"), (told[:1], "unknown"), (told, "none")):
        case = case_of(topic(), join("x"), facts=facts)
        case = replace(case, run=replace(case.run, offsets_ms={}))  # no store was copied
        assert Offsets(case).committed(queues) == said
    case = case_of(topic(), join("x"), facts=told, commits=[commit(0, 5)])
    assert Offsets(case).committed(queues) == "some"  # of the other one only
