"""Predicted against observed ownership of one group: EQUAL, DIFFERS, UNSTABLE, UNKNOWN or OFFLINE.

`observations` reads what dumps show, `prediction` what the ledger expects; `difference` classifies
where they disagree, by `explanations`; `findings` words the result.

May import: what `audit` may, and `audit.evidence`.
Begin with `compare.compare`.
"""
