# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # The morning after
#
# The nightly audit of a cluster ended with FAILED. What is wrong, how far can the answer be trusted,
# and what happened to one group? All of it from `rebalance_core` alone, in this process: no Spark.
# The cluster is the recording that `rebalance demo` writes; set `COLLECTION` to audit one of yours.

# %%
import os
import tempfile
import zipfile
from importlib.resources import files
from pathlib import Path

import rebalance_core

COLLECTION = os.environ.get("COLLECTION")
if COLLECTION is None:
    folder = tempfile.mkdtemp()
    zipfile.ZipFile(files(rebalance_core) / "bundled" / "nightly.zip").extractall(folder)
    COLLECTION = Path(folder) / "collection"

audit = rebalance_core.audit_collection(COLLECTION)
audit

# %% [markdown]
# ## What is wrong
#
# Findings that follow from another one have its fingerprint in `caused_by`. Those without are what
# somebody has to mend.

# %%
findings = audit.findings.to_pandas()
above_info = findings[findings["severity"] != "INFO"]
causes = above_info[~above_info["caused_by"].isin(above_info["fingerprint"])]
print(f"{len(above_info)} findings, {len(causes)} causes")
for row in causes.sort_values(["severity", "rule_id"]).itertuples():
    below = above_info[above_info["caused_by"] == row.fingerprint]
    follow = ", ".join(f"{n} {rule}" for rule, n in below["rule_id"].value_counts().sort_index().items())
    print(f"{row.severity:8} {row.rule_id:27} {row.consumer_group:14} {f'-> {follow}' if follow else ''}")

# %% [markdown]
# ## How far it can be trusted
#
# `coverage` says of which times the files of each host tell. What no file covers is UNKNOWN, never
# "fine".

# %%
coverage = audit.coverage.to_pandas()
hosts = coverage.groupby(["role", "host"])[["lines", "understood"]].sum().astype(int)
print(hosts.to_string())
verdicts = audit.group_verdicts.to_pandas()
print(verdicts["verdict"].value_counts().to_string())

# %% [markdown]
# ## One group
#
# `notify` has queues that two processes read and others that nobody reads. Who has what, and why?

# %%
GROUP = os.environ.get("GROUP", "notify")
owned = audit.ownership.to_pandas()
now = owned[(owned["consumer_group"] == GROUP) & owned["to_ms"].isna()]
print(now[["topic", "broker_name", "queue_id", "client_id", "holders"]].to_string(index=False))

# %%
first = now[now["topic"] == "orders"].sort_values(["broker_name", "queue_id"]).iloc[0]
queue = f"{first['topic']}/{first['broker_name']}/{first['queue_id']}"
rebalance_core.explain_queue(audit, GROUP, queue, audit.facts["end_ms"])

# %% [markdown]
# The list of members names one client id twice: both processes compute the share of the first of the
# two. With an id each, nothing is left over. The same group drawn by hand, and what one more consumer
# would move: where its id will sort is not known yet, so the answer is a range.

# %%
topics = {
    topic: rows.groupby("broker_name").size().to_dict()
    for topic, rows in now[~now["topic"].str.startswith("%RETRY%")].groupby("topic")
}
members = ["172.17.0.2@notify-1", "172.17.0.2@notify-2", "172.17.0.3@notify"]
mended = rebalance_core.simulate(rebalance_core.sketch(topics, members, group=GROUP))
print(mended.epochs.to_pandas()[["epoch", "members", "queues", "orphaned", "shared"]].to_string(index=False))
rebalance_core.what_if(members, topics, "AVG", {"add_consumers": 1})
