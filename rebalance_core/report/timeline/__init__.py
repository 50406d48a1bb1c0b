"""Who held each queue when, ready to draw: for the page and for the pictures alike.

``histories`` makes segments of stretches, ``folding`` lets queues with equal histories share a row,
``cells`` turns segments into pixels on an ``axis``; ``times`` writes times and durations.

May import: `report.audit_report`, `model`; markupsafe. Begin with `histories`.
"""
