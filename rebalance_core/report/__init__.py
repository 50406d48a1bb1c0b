"""The audit's HTML page: one file, no script, nothing fetched; the same night gives the same bytes.

``night`` is what the page is told; ``page.render_page`` makes the page. On the way:
``sections`` orders the findings, ``timeline`` draws who owned which queue (``histories`` ->
``folding`` -> ``cells`` -> ``painting``, in a ``frame``), ``bars`` draws the balance.
Names come from outside: ``visible`` shows what would hide, ``svg`` and the template escape it.
"""
