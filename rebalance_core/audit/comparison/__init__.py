"""Predicted against observed ownership of one group: EQUAL, DIFFERS, UNSTABLE, UNKNOWN or OFFLINE.

`observations` reads what dumps show, `prediction` what the ledger expects; `difference` classifies
where they disagree, with the help of `explanations`; `findings` reports it.

May import: what `audit` may, and `audit.evidence`.
Begin with `compare.compare`.
"""
