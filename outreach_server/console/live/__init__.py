"""Pages that change while they are open."""
