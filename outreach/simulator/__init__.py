"""What the simulators of both channels share: adapters never import each other."""
