"""Building blocks of the simulators of both channels: adapters never import each other."""
