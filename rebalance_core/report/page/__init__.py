"""The audit's HTML page: one file, no script, nothing fetched; equal reports give equal bytes.

`page.render_page` takes a `report.audit_report.AuditReport`. `headline` and ``sections`` order the
findings, ``timeline`` draws who owned which queue (``frame``, ``painting``, ``patterns``,
``causes``), ``bars`` draws the balance. Names come from outside: ``visible`` shows what would hide,
``svg`` and the template escape it.

May import: `report.audit_report`, `report.timeline`, `model`; jinja2 and markupsafe.
Begin with `page`.
"""
