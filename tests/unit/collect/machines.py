"""Folders that look like the machines of a cluster, and the script run on them."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.tree import TREE

SCRIPT = TREE / "rebalance_core/bundled/collect/collect.sh"

SOURCES = """\
# kind  name       logs              store or another    zone
broker  broker-a   {root}/mq1/logs   {root}/mq1/store

broker  room@b     {root}/mq2/logs   {root}/mq2/store
namesrv namesrv-1  {root}/ns1/logs
proxy   px-1       {root}/px1/logs   10.0.0.7:8080
proxy   px-2       {root}/px2/logs
client  billing    {root}/app1/logs  -                    America/New_York
client  feed       {root}/app2/logs  {root}/app2/.rocketmq_offsets
"""
FILES = {
    "mq1/logs/broker.log": "a",
    "mq1/logs/otherdays/broker.1.log.gz": "a",
    "mq1/logs/filter.log": "a",
    "mq1/logs/store.log": "not ours",
    "mq1/logs/broker_traffic.log": "not ours",
    "mq2/logs/broker.log": "b",
    "mq2/logs/lock.log": "b",
    "ns1/logs/namesrv.log": "n",
    "px1/logs/broker.log": "p",
    "px1/logs/otherdays/proxy.1.log.gz": "p",
    "px1/logs/proxy.log": "p",
    "px1/logs/proxy_watermark.log": "not ours",
    "px2/logs/broker.log": "p",
    "app1/logs/rocketmq_client.log": "c",
    "app1/logs/rocketmq_client.log.1": "c",
    "app2/logs/rocketmq_client.log": "f",
    "app2/logs/other_days/rocketmq_client-1.log.gz": "f",
    "app2/.rocketmq_offsets/10.0.0.9@DEFAULT/feed/offsets.json": "{}",
    "app2/.rocketmq_offsets/10.0.0.9@DEFAULT/feed/offsets.json.bak": "{}",
    **{f"mq1/store/config/{name}": "{}" for name in ("topics.json", "consumerOffset.json")},
    **{f"mq2/store/config/{name}": "{}" for name in ("topics.json", "consumerOffset.json")},
    "mq1/store/config/subscriptionGroup.json": "{}",
    "mq2/store/config/subscriptionGroup.json": "{}",
    "mq1/store/config/topics.json.bak": "{}",
    "mq1/store/config/messageRequestMode.json.bak": "{}",
    "mq1/store/config/consumerOrderInfo.json": "{}",
    "mq1/store/config/delayOffset.json": "not ours",
}


@dataclass(frozen=True)
class Run:
    """What a run of the script left."""

    code: int
    stdout: str
    stderr: str
    output: Path

    def files(self) -> list[str]:
        """The collection's files, the time of a snapshot as ``<ms>``."""
        paths = (path for path in self.output.rglob("*") if path.is_file())
        names = (path.relative_to(self.output).as_posix() for path in paths)
        return sorted(_without_time(name) for name in names)


def _without_time(name: str) -> str:
    parts = (part.rpartition("-") for part in name.split("/"))
    return "/".join(
        f"{stem}-<ms>" if len(end) == 13 and end.isdigit() else stem + dash + end
        for stem, dash, end in parts
    )


def machines(root: Path) -> Path:
    """Makes the machines below the folder; the path of the file that names them."""
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    sources = root / "sources.txt"
    sources.write_text(SOURCES.format(root=root))
    return sources


def collect(root: Path, *options: str, **environment: str) -> Run:
    """Runs the script with an environment of its own: no name server, no credentials."""
    return run_script(SCRIPT, root, *options, **environment)


def run_script(script: Path, root: Path, *options: str, **environment: str) -> Run:
    """Runs the collector's script, or one that calls it."""
    output = root / "collection"
    variables = {"PATH": os.environ["PATH"], "TZ": "Asia/Shanghai", **environment}
    done = subprocess.run(
        [str(script), "--output", str(output), *options],
        capture_output=True,
        text=True,
        errors="replace",
        env=variables,
        check=False,
        timeout=60,
    )
    return Run(done.returncode, done.stdout, done.stderr, output)


def executable(path: Path, text: str) -> Path:
    """A shell script at the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}")
    path.chmod(0o755)
    return path
