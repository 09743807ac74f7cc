"""Reading requests: small bodies, large ones, and queries."""
