"""What the core never imports: each is reached through a constructor, by its name, or imported by the host."""
