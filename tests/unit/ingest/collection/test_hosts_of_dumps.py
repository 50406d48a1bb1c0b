"""Hosts that only the names of dumps tell of."""

import pytest

from rebalance_core.ingest.collection import CollectedFile, hosts_of_dumps, identify


def files(*names: str) -> list[CollectedFile]:
    found = [identify(f"mqadmin/1795000000000-{name}.txt") for name in names]
    return [one for one in found if one is not None]


BROKERS = "consumerConnection-g-a", "consumerConnection-h-a"


@pytest.mark.parametrize(
    ("names", "hosts"),
    [
        (("consumerConnection-g-p1", "consumerConnection-h-p1"), {"p1"}),
        # of one group alone it may be another group
        (("consumerConnection-g-dlq",), set()),
        # brokers were asked for it: it is a group
        (("consumerConnection-g-dlq", "consumerConnection-g-dlq-a", "consumerConnection-h-dlq",
          "consumerConnection-h-dlq-a"), set()),
        (("consumerProgress-g-p1", "consumerProgress-h-p1"), set()),
        (("clusterList-p1", "clusterList", "clusterList-a"), {"p1"}),
    ],
)  # fmt: skip
def test_a_word_after_several_groups_is_a_host(names: tuple[str, ...], hosts: set[str]) -> None:
    assert hosts_of_dumps(files(*BROKERS, *names), {"a"}) == hosts
