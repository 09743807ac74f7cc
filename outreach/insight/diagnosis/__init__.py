"""The diagnosis of the set-up and the data: `engine.diagnose()`.

A storage examines its database (`storage/*/diagnosis.py`), this package the rest of the engine, and the server its own
set-up (`outreach_server/cli/doctor`). A check that fails is a finding, so that a broken system is always described.
"""
