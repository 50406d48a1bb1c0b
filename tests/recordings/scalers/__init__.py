"""Scalers on a live cluster, measured, and their replays.

Each run has two brokers (5.3.3) with 8 queues each, a group whose members read 50 messages a second
(two threads, 40 ms a message), a process for each, and for six minutes the HPA of
`planning.autoscale.hpa`, which reads each queue's end and commit from the brokers as an exporter
does. It starts processes and sends them SIGTERM, in ``kill`` SIGKILL. ``step`` and ``ordered`` have
150 s of 220 messages a second between 60, ``burst`` a minute of 300, ``ramp`` 60 to 264 in three
minutes, scaled by the rate, ``skew`` two queues with 42 of 180; ``burst-ramp`` and ``burst-tight``
have the load of ``burst`` and other policies. Files: ``policy.toml``, what came (``arrivals.csv``),
processes (``pods.csv``, ms after the begin), process queue tables each 20 ms (``owners.csv``), ends
and commits of every tenth second, lag of every second (``uncommitted`` is what the scaler reads),
and every message that was read again (``copies.csv``).
"""
