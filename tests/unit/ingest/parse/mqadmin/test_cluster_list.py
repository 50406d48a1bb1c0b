from rebalance_core.ingest.parse.mqadmin_topics import CLUSTER_LIST_KINDS, parse_cluster_list
from tests.unit.ingest.documents import codes, facts, parse_all

V5 = """\
#Cluster Name           #Broker Name            #BID  #Addr                  #Version              #InTPS(LOAD)                   #OutTPS(LOAD)  #Timer(Progress)        #PCWait(ms)  #Hour         #SPACE    #ACTIVATED
DefaultCluster          broker-a                0     127.0.0.1:25020        V5_3_3                 0.00(0,0ms)               0.00(0,0ms|0,0ms)  0-0(0.0w, 0.0, 0.0)               0  0.07          0.1500          true
DefaultCluster          broker-a                1     127.0.0.1:25021                               0.00(,ms)                 0.00(,ms|,ms)      0-0(0.0w, 0.0, 0.0)                  0.00          0.0000         false
"""  # noqa: E501 - the columns are upstream's
V4 = """\
#Cluster Name     #Broker Name            #BID  #Addr                  #Version                #InTPS(LOAD)       #OutTPS(LOAD) #PCWait(ms) #Hour #SPACE
ProdCluster       mq-east                 0     127.0.0.1:28020        V4_9_7                   0.00(0,0ms)         0.00(0,0ms)          0 498675.64 0.1500
"""  # noqa: E501 - the columns are upstream's
MORE = """\
#Cluster Name     #Broker Name                       #InTotalYest  #OutTotalYest  #InTotalToday #OutTotalToday
ProdCluster       mq-east                                       1              2              3              4
"""  # noqa: E501 - the columns are upstream's


def test_brokers_of_5_x() -> None:
    master, slave = facts(parse_cluster_list(V5, "f"), "broker")
    assert master == {
        "cluster": "DefaultCluster",
        "broker_name": "broker-a",
        "broker_id": 0,
        "addr": "127.0.0.1:25020",
        "version": "V5_3_3",
        "activated": True,
    }
    assert (slave["broker_id"], slave["version"], slave["activated"]) == (1, None, False)


def test_brokers_of_4_9() -> None:
    [broker] = facts(parse_cluster_list(V4, "f"), "broker")
    assert (broker["cluster"], broker["addr"]) == ("ProdCluster", "127.0.0.1:28020")
    assert (broker["version"], broker["activated"]) == ("V4_9_7", None)


def test_names_wider_than_their_columns() -> None:
    text = V4.replace("ProdCluster       mq-east       ", f"{'C' * 40}  {'b' * 50}  "[:-8])
    text = V4.replace(f"{'ProdCluster':<16}", "C" * 40).replace(f"{'mq-east':<22}", "b" * 50)
    [broker] = facts(parse_cluster_list(text, "f"), "broker")
    assert (broker["cluster"], broker["broker_name"]) == ("C" * 40, "b" * 50)
    assert (broker["broker_id"], broker["version"]) == (0, "V4_9_7")


def test_totals() -> None:
    [row] = facts(parse_cluster_list(MORE, "f"), "broker_totals")
    assert row == {
        "cluster": "ProdCluster",
        "broker_name": "mq-east",
        "in_yesterday": 1,
        "out_yesterday": 2,
        "in_today": 3,
        "out_today": 4,
    }


def test_bad_rows_are_refused_by_name() -> None:
    assert codes(parse_cluster_list(V4.replace(" 0     127", " x     127"), "f")) == ["BAD_NUMBER"]
    assert codes(parse_cluster_list(V5.replace("false", "maybe"), "f")) == ["UNPARSABLE_LINE"]
    assert codes(parse_cluster_list(V4[:-30], "f")) == ["UNPARSABLE_LINE"]
    assert codes(parse_cluster_list("#Topic\n", "f")) == ["WRONG_FILE"]


def test_every_recording() -> None:
    counts = parse_all(r"mqadmin/\d+-clusterList", parse_cluster_list, CLUSTER_LIST_KINDS)
    assert counts["broker"] > counts["files"] >= 1
