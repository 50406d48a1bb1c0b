"""The collector's Java, compiled against released jars; a JDK, and Maven, which fetches them."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from rebalance_core.ingest.parse.consumer_status import parse_consumer_status
from scripts.build_collector import CLASSES, compile_for, fetch
from tests.unit.ingest.documents import codes, facts

PROBE = """\
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import %(package)s.body.ClusterInfo;
import %(package)s.body.ConsumerRunningInfo;
import %(package)s.body.ProcessQueueInfo;
import org.apache.commons.cli.CommandLine;
import org.apache.commons.cli.Options;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.RPCHook;

public class Probe {
    public static void main(String[] arguments) throws Exception {
        Collect collect = new Collect(Paths.get(arguments[0]), null);
        collect.write("long", out -> out.print("x".repeat(100_000)));
        Set<String> ids = Set.of("a/b@1", "a%%2Fb@1", "A%%2FB@1");
        collect.writeEach("consumerStatus-g", ids, (id, out) -> out.println(id));
        Map<String, Integer> tries = new TreeMap<>();
        collect.writeEach("consumerStatus-h", Set.of("dead@1", "late@2"), (id, out) -> {
            if (tries.merge(id, 1, Integer::sum) == 1 || id.equals("dead@1")) {
                throw new Exception("no answer " + tries.get(id));
            }
            out.println(id);
        });
        for (String command : new String[] {"topicRoute-t", "topicRoute-T", "topicRoute-t"}) {
            collect.write(command, out -> out.println(command));
        }
        collect.write("list", out -> collect.answers.consumerStatusList(
            "1795231800000", Map.of("hung@1", "V5_3_3", "go@2", "V5_3_3"),
            new TreeMap<>(Map.of("hung@1", hung(), "go@2", new ConsumerRunningInfo())), out));
        for (int code : new int[] {16, 1, 206}) {
            String why = code == 1 ? "org.apache.rocketmq.acl.common.AclException: No" : "no";
            collect.write("refused", out -> {
                throw new org.apache.rocketmq.client.exception.MQBrokerException(code, why);
            });
        }
        collect.write("clusterList", out -> collect.execute(new Refused(), out));
        System.err.println("its own message");
        collect.nameRefused();
        List<Map<String, Set<String>>> tables = new ArrayList<>();
        tables.add(null);
        tables.add(new HashMap<>());
        tables.add(new HashMap<>(Map.of("X", Set.of("b"))));
        for (Map<String, Set<String>> known : tables) {
            ClusterInfo info = new ClusterInfo();
            info.setClusterAddrTable((HashMap<String, Set<String>>) known);
            try {
                Collect.brokersOf("C", info);
            } catch (java.io.IOException | IllegalArgumentException e) {
                System.err.println(e);
            }
        }
        System.out.println(collect.failed.get() + " " + collect.files.get());
        System.exit(0);
    }

    /** Prints the stacks of refused questions itself, as ClusterListSubCommand does. */
    static final class Refused implements org.apache.rocketmq.tools.command.SubCommand {
        public String commandName() {
            return "refused";
        }

        public String commandDesc() {
            return "refused";
        }

        public Options buildCommandlineOptions(Options options) {
            return options;
        }

        public void execute(CommandLine line, Options options, RPCHook hook) {
            System.out.println("#Cluster Name");
            new Exception("refused").printStackTrace();
        }
    }

    static ConsumerRunningInfo hung() {
        ConsumerRunningInfo info = new ConsumerRunningInfo();
        info.getProperties().put(ConsumerRunningInfo.PROP_CONSUME_TYPE, "CONSUME_PASSIVELY");
        info.getProperties().put(ConsumerRunningInfo.PROP_CONSUME_ORDERLY, "false");
        ProcessQueueInfo queue = new ProcessQueueInfo();
        queue.setCachedMsgCount(5);
        queue.setLastConsumeTimestamp(System.currentTimeMillis() - 600_000);
        info.getMqTable().put(new MessageQueue("T", "broker-a", 3), queue);
        return info;
    }
}
"""


ENDING = """\
import java.util.concurrent.Callable;

final class NameServer {
    static final String ADDRESSES = "none";

    static <T> T ask(Callable<T> question) {
        throw new OutOfMemoryError("Java heap space");
    }
}
"""
"""Ends the program with an Error, after its client has started."""


RELEASES = {
    "4.9.4": "4.9",
    "4.9.8": "4.9",
    "5.0.0": "5.0",
    "5.1.0": "5.1",
    "5.3.3": "5.1",
    "5.5.0": "5.1",
}
"""Releases, and the form of the class files for each."""


@pytest.fixture(scope="module", params=RELEASES)
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the probe wrote into, with the report; files were limited to 32 KiB."""
    version = request.param
    root = tmp_path_factory.mktemp(f"collector-{version}")
    jars = f"{fetch(version, root / 'jars')}/*"
    compile_for(root / "jars/lib", root / "classes")
    package = "org.apache.rocketmq."
    package += "common.protocol" if RELEASES[version] < "5.1" else "remoting.protocol"
    (root / "Probe.java").write_text(PROBE % {"package": package})
    shipped = root / "shipped"
    shutil.copytree(CLASSES / RELEASES[version], shipped)
    words = [
        "javac",
        "--release",
        "11",
        "-nowarn",
        "-cp",
        f"{shipped}:{jars}",
        "-d",
        str(root / "probe"),
    ]
    subprocess.run([*words, str(root / "Probe.java")], check=True, timeout=100)
    (root / "out").mkdir()
    (root / "report").mkdir()
    java = f'ulimit -f 32; exec java -cp "{root}/probe:{shipped}:{jars}" Probe {root}/out'
    done = subprocess.run(
        ["bash", "-c", java],
        cwd=root,
        env=os.environ | {"COLLECT_REPORT": f"{root}/report"},
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    assert done.stdout.splitlines()[-1] == "2 13"
    (root / "stderr").write_text(done.stderr)
    return root


def test_the_class_files_that_are_shipped_are_those_of_the_sources(written: Path) -> None:
    """By a javac of the same release: others may write them otherwise."""
    compiled, shipped = (
        {path.name: path.read_bytes() for path in folder.iterdir()}
        for folder in (written / "classes", written / "shipped")
    )
    assert compiled == shipped


def test_what_does_not_fit_the_disk_is_a_part_and_is_reported(written: Path) -> None:
    (part,) = written.glob("out/**/*.part")
    what, _, why = (written / "report/failed").read_text().splitlines()[0].partition("\t")
    assert what == f"mqadmin/{part.name.removesuffix('.part')}"
    assert "was not written whole" in why


def test_names_that_become_one_are_two_files(written: Path) -> None:
    statuses = {path.read_text().strip() for path in written.glob("out/*-consumerStatus-g/*.txt")}
    assert statuses == {"a/b@1", "a%2Fb@1", "A%2FB@1"}
    paths = [path.relative_to(written).as_posix().lower() for path in written.glob("out/**/*.txt")]
    assert len(set(paths)) == len(paths) == 13


def test_clients_that_do_not_answer_are_asked_once_more(written: Path) -> None:
    (late,) = written.glob("out/*-consumerStatus-h/late@2.txt")
    (dead,) = written.glob("out/*-consumerStatus-h/dead@1.txt")
    assert late.read_text() == "late@2\n"
    assert dead.read_text().startswith("java.lang.Exception: no answer 2")


def test_the_list_of_consumer_status_is_read_with_what_may_be_blocked(written: Path) -> None:
    (path,) = written.glob("out/*-list.txt")
    parsed = parse_consumer_status(path.read_text(), "f")
    assert codes(parsed) == []  # go@2 leaves out what analyzeSubscription needs
    assert facts(parsed, "same_subscription") == []
    assert {one["client_id"] for one in facts(parsed, "listed_client")} == {"hung@1", "go@2"}
    (stuck,) = facts(parsed, "stuck_queue")
    assert (stuck["client_id"], stuck["queue_id"], stuck["trouble"]) == ("hung@1", 3, "consume")
    assert stuck["count"] >= 600_000


def test_questions_that_are_refused_are_a_failure(written: Path) -> None:
    (line,) = (written / "report/failed").read_text().splitlines()[1:]
    what, why = line.split("\t")
    assert what == "mqadmin"
    assert why.startswith(
        "2 questions: a broker refuses questions without credentials (ROCKETMQ_CREDENTIALS names"
    )
    assert "CODE: 16" in why
    assert "For more information" not in why
    assert why in (written / "stderr").read_text().splitlines()[-4]


def test_a_name_server_without_brokers_is_no_wrong_cluster(written: Path) -> None:
    no_broker = "java.io.IOException: the name server null knows no broker, so"
    empty, none, other = (written / "stderr").read_text().splitlines()[-3:]
    assert all(line.startswith(no_broker) for line in (empty, none))
    assert other.startswith("java.lang.IllegalArgumentException: there is no cluster C; ")


def test_an_error_that_ends_the_program_is_reported(written: Path) -> None:
    (written / "NameServer.java").write_text(ENDING)
    words = ["javac", "--release", "8", "-nowarn", "-d", str(written / "ending")]
    subprocess.run([*words, str(written / "NameServer.java")], check=True, timeout=100)
    report = written / "ended"
    report.mkdir()
    path = f"{written}/ending:{written}/shipped:{written}/jars/lib/*"
    done = subprocess.run(
        ["java", "-cp", path, "Collect", str(written / "out"), "C", "1"],
        cwd=written,
        env=os.environ | {"COLLECT_REPORT": str(report), "NAMESRV_ADDR": "127.0.0.1:1"},
        capture_output=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 1
    why = "java.lang.OutOfMemoryError: Java heap space"
    assert (report / "failed").read_text() == f"mqadmin\t{why}\n"


def test_stacks_that_a_command_prints_are_in_its_file_alone(written: Path) -> None:
    (path,) = written.glob("out/*-clusterList.txt")
    header, stack, frame, *_ = path.read_text().splitlines()
    assert (header, stack) == ("#Cluster Name", "java.lang.Exception: refused")
    assert frame.startswith("\tat Probe$Refused.execute(")
    assert "its own message" in (written / "stderr").read_text()
    assert "\tat " not in (written / "stderr").read_text()
