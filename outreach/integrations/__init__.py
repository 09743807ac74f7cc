"""Integrations, which the core never imports: each is given to a constructor, named, or imported by the host."""
