"""The audit's HTML page: one file, no script, nothing fetched; equal reports give equal bytes.

`page.render_page` takes a `report.audit_report.AuditReport`. `headline` and ``sections`` order the
findings, ``group_timeline`` draws who owned which queue (``frame``, ``painting``, ``patterns``,
``cause_flags``), ``bars`` draws the balance. Names come from outside: ``visible`` makes hidden
characters visible, ``svg`` and the template escape them.

May import: `report.audit_report`, `report.timeline`, `model`; jinja2 and markupsafe.
Begin with `page`.
"""
