"""A deterministic simulation of the whole engine: a seed decides everything that happens.

`python -m tests.simulation --seed N` replays one; see `driver.simulate`. It does not play a database that is restored
from an older copy: `tests/process` does.
"""
