"""What all adapters that speak HTTP share: one request and no second one, outcome classes, signatures."""
