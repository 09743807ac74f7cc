"""A new campaign in four steps; its draft and its upload are the state, and each step is a URL."""
