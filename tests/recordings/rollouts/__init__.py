"""Rolling restarts of real groups, measured: their tables and what was seen, and what is simulated.

``runs`` has two brokers with 8 queues each, about 100 messages a second, and two groups of six
members, ``orders-fast`` (concurrent) and ``orders-ordered`` (orderly), restarted at the same time.
P1: one at a time, 15 s apart; P2: 5 s apart; P3: three at once, the others 20 s later; P4: all at
once; P5: a new one joins, 5 s later the old one leaves, 10 s apart; P6: as P1, but killed. A
handler takes 5 ms, in the runs ``-s`` 60 ms.

``v1`` and ``t0`` have twelve members, replaced as a Deployment does: d25 surge and unavailable a
quarter, u50 unavailable a half, s100j surge all, with pods up to 15 s late; k9: a process with four
members of each group is killed.
"""
