"""A deterministic simulation of the whole engine: a seed decides everything that happens.

`python -m tests.simulation --seed N` replays one; see `driver.simulate`.
"""
