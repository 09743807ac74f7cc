"""One endpoint per path."""
