"""Brokers that neither a folder nor a setting names."""

from pathlib import Path

import pytest

from rebalance_core.ingest.collection import open_collection
from rebalance_core.model.errors import InputRefused
from tests.unit.ingest.named_dumps import AT, CONNECTION, NAMED, groups, of_dumps

LISTED = (
    f"{'#Cluster Name':<22}  {'#Broker Name':<22}  {'#BID':<4}  {'#Addr':<22} {'#Version':<16} "
    "#ACTIVATED\n"
    f"{'C':<22}  {'b-one':<22}  {'0':<4}  {'10.9.0.1:10911':<22} {'V5_3_3':<16} true\n"
)
ROUTE = (
    '{"brokerDatas":[{"brokerAddrs":{0:"10.9.0.1:10911"},"brokerName":"b-one","cluster":"C"}],'
    '"queueDatas":[{"brokerName":"b-one","perm":6,"readQueueNums":4,"writeQueueNums":4}]}'
)
SETTINGS = (
    f"============10.9.0.1:10911============\n{'brokerClusterName':<50}= C\n"
    f"{'brokerName':<50}= b-one\n"
)


@pytest.mark.parametrize(
    "naming",
    [
        {f"{AT}-clusterList.txt": LISTED},
        {f"{AT}-topicRoute-T.txt": ROUTE},
        {f"{AT}-getBrokerConfig.txt": SETTINGS},
        # nothing lists it, and other dumps name the groups that it ends the lists of
        {f"{AT}-consumerProgress-s-order-service.txt": "", f"{AT}-consumerProgress-g.txt": ""},
    ],
)
def test_a_group_has_no_name_of_a_broker_in_it(naming: dict[str, str], tmp_path: Path) -> None:
    lists = {f"{AT}-consumerConnection-{g}-b-one.txt": "" for g in ("order-service", "g")}
    done = of_dumps(tmp_path, lists | naming, brokers="")
    assert groups(done) == {"order-service", "g"}
    asked = {
        r["broker_name"] for r in done.tables["observed_facts"] if r["kind"] == "GROUP_AT_BROKER"
    }
    assert asked == {"b-one"}


def test_an_empty_dump_of_one_topic_is_of_the_group_that_others_name(tmp_path: Path) -> None:
    dumps = {NAMED: CONNECTION, f"{AT}-consumerProgress-t-T-order-service.txt": ""}
    assert groups(of_dumps(tmp_path, dumps)) == {"order-service"}


def test_the_progress_of_all_groups_is_of_none(tmp_path: Path) -> None:
    dumps = {NAMED: CONNECTION, f"{AT}-consumerProgress-all.txt": "SLF4J: x\n"}
    assert groups(of_dumps(tmp_path, dumps)) == {"order-service"}


@pytest.mark.parametrize(
    ("name", "text"),
    [("clusterList", LISTED), ("topicRoute-T", ROUTE), ("getBrokerConfig", SETTINGS)],
)
def test_dumps_name_the_cluster_of_a_folder_without_settings(
    name: str, text: str, tmp_path: Path
) -> None:
    folder = tmp_path / "mqadmin"
    folder.mkdir()
    (folder / f"{AT}-{name}.txt").write_text(text)
    settings = open_collection(tmp_path).settings
    assert settings.cluster == "C"
    assert settings.brokers == ()
    (failure,) = settings.failed
    assert failure.what == "collection.toml"
    assert f"the cluster is C, as in mqadmin/{AT}-{name}.txt" in failure.why


def test_dumps_of_two_clusters_name_none(tmp_path: Path) -> None:
    folder = tmp_path / "mqadmin"
    folder.mkdir()
    (folder / f"{AT}-clusterList.txt").write_text(LISTED)
    (folder / f"{AT}-topicRoute-T.txt").write_text(ROUTE.replace('"C"', '"D"'))
    with pytest.raises(InputRefused, match=r"collection\.toml is missing.*; dumps show C, D$"):
        open_collection(tmp_path)
    (folder / f"{AT}-topicRoute-T.txt").unlink()
    (folder / f"{AT}-clusterList.txt").write_text(LISTED.replace("10911", "x"))
    with pytest.raises(InputRefused, match=r"DefaultCluster\"$"):
        open_collection(tmp_path)
