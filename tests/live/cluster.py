"""A RocketMQ cluster on this machine, for the lane `make live`; `kit/` starts its processes."""

import os
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

KIT = Path(__file__).parent / "kit"
NAME_SERVER_PORT = 19876
BROKERS = {"broker-a": 19911, "broker-b": 19931}
USER, PASSWORD = "rebalance", "rebalance-live"
ACL = (
    "authenticationEnabled=true",
    "authenticationProvider=org.apache.rocketmq.auth.authentication.provider"
    ".DefaultAuthenticationProvider",
    "authenticationMetadataProvider=org.apache.rocketmq.auth.authentication.provider"
    ".LocalAuthenticationMetadataProvider",
    "authorizationEnabled=true",
    "authorizationProvider=org.apache.rocketmq.auth.authorization.provider"
    ".DefaultAuthorizationProvider",
    "authorizationMetadataProvider=org.apache.rocketmq.auth.authorization.provider"
    ".LocalAuthorizationMetadataProvider",
    f'initAuthenticationUser={{"username":"{USER}","password":"{PASSWORD}"}}',
)
"""Settings of a broker that refuses what is not signed by a user it knows (ACL 2.0)."""


def prepare(lab: Path) -> None:
    """Fetch RocketMQ's jars and compile the kit's clients, unless that is done."""
    if not credentials(lab).is_file():
        subprocess.run([str(KIT / "setup.sh"), str(lab)], check=True)
        credentials(lab).write_text(f"accessKey: {USER}\nsecretKey: {PASSWORD}\n")


def credentials(lab: Path) -> Path:
    """Return the file of the user's keys, with which clients and tools sign from the beginning."""
    return lab / "conf/tools.yml"


class Cluster:
    """A name server, two brokers and clients on loopback.

    Args:
        lab: what `prepare` made.
        run: a new folder for stores, logs and process ids.
    """

    def __init__(self, lab: Path, run: Path) -> None:
        self.run = run
        self.name_server = f"127.0.0.1:{NAME_SERVER_PORT}"
        self._environment = os.environ | {
            "LAB": str(lab),
            "RUN": str(run),
            "NAMESRV_ADDR": self.name_server,
        }

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *error: object) -> None:
        self.call("down")

    def call(self, *words: object) -> str:
        """Call a function of the kit's `ops.sh`; return what it printed."""
        script = f'. "{KIT}/ops.sh"; "$@"'
        done = subprocess.run(
            ["bash", "-c", script, "bash", *map(str, words)],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=True,
            text=True,
        )
        return done.stdout

    def start(self) -> None:
        """Start the name server, the brokers and the process for admin commands."""
        self.call("namesrv", "ns1", NAME_SERVER_PORT)
        wait("the name server", lambda: "boot success" in self._printed("ns1"))
        for broker in BROKERS:
            self.start_broker(broker)
        self.call("admin_up")
        time.sleep(5)

    def start_broker(self, broker: str, *settings: str) -> None:
        """Start a broker, anew after `kill`, and wait until it serves.

        ``settings``: lines of its configuration besides the kit's own.
        """
        boots = self._printed(broker).count("boot success")
        self.call("broker", broker, BROKERS[broker], *settings)
        wait(broker, lambda: self._printed(broker).count("boot success") > boots)

    def kill(self, server: str) -> None:
        """Kill a server with SIGKILL."""
        self.call("kill_server", server)

    def topic(self, name: str, queues: int) -> None:
        """Create a topic at each broker, or change its number of queues."""
        for port in BROKERS.values():
            address = f"127.0.0.1:{port}"
            self.call("admin", "updateTopic", "-b", address, "-t", name, "-r", queues, "-w", queues)

    def group(self, name: str, *, enabled: bool = True) -> None:
        """Configure a group at each broker; brokers refuse the pulls of one that is not enabled."""
        for port in BROKERS.values():
            address = f"127.0.0.1:{port}"
            # without -d the command turns BROADCASTING off
            words = "updateSubGroup", "-b", address, "-g", name, "-d", "true"
            self.call("admin", *words, "-s", str(enabled).lower())

    def client(self, name: str, members: Iterable[Mapping[str, object]]) -> None:
        """Start a process with members, and wait until all have started.

        Each member has the kit's keys, such as group, ip and topics.
        """
        words: list[object] = []
        starts = 0
        for member in members:
            words += ["--"] if words else []
            words += [f"{key}={value}" for key, value in {**member, "received": "false"}.items()]
            starts += 1
        self.call("client", name, *words)
        truth = self.run / f"app-{name}/truth.jsonl"
        wait(name, lambda: truth.exists() and truth.read_text().count('"started"') == starts)

    def stop_client(self, name: str) -> None:
        """Stop the members of a process gracefully."""
        self.call("stop_client", name)

    def kill_client(self, name: str) -> None:
        """Kill a process of members with SIGKILL."""
        self.call("kill_client", name)

    def tell(self, name: str, command: str) -> None:
        """Write a command, such as ``suspend``, to a process of members."""
        with (self.run / f"app-{name}/in").open("w") as pipe:
            pipe.write(command + "\n")

    def send(self, topic: str, messages: int) -> None:
        """Send so many messages to the first queue of a topic at each broker."""
        for broker in BROKERS:
            self.call("send", topic, broker, 0, messages)

    def sources(self, clients: Iterable[str]) -> str:
        """Return the file for `rebalance night --sources`."""
        lines = [
            f"broker {broker} {self.run}/{broker}/logs/rocketmqlogs {self.run}/{broker}/store"
            for broker in BROKERS
        ]
        lines += [f"namesrv ns1 {self.run}/ns1/logs/rocketmqlogs"]
        lines += [f"client {name} {self.run}/app-{name}/logs/rocketmqlogs" for name in clients]
        return "\n".join(lines) + "\n"

    def _printed(self, server: str) -> str:
        file = self.run / server / "out"
        return file.read_text(errors="replace") if file.exists() else ""


def wait(what: str, done: Callable[[], bool], seconds: int = 120) -> None:
    """Wait until something is done.

    Raises:
        TimeoutError: it is not, in that time.
    """
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not up after {seconds} s")
        time.sleep(1)
