"""One endpoint a path."""
