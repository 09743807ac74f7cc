"""A deterministic simulation of the whole engine: one seed, one course of events.

`python -m outreach.testing.simulation --seed N` replays one; see `driver.simulate`.
"""
