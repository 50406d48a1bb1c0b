"""Who held each queue when, ready to draw: for the page and for the pictures alike.

``owner_segments`` cuts a queue's history into segments, ``folding`` lets queues with equal
histories share a row, ``painted_cells`` turns segments into pixels on an ``axis``; ``time_markup``
writes times and durations.

May import: `report.audit_report`, `model`; markupsafe. Begin with `owner_segments`.
"""
