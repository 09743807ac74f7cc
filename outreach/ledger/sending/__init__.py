"""Planning and committing what is sent next: waves of campaigns, and single calls and messages."""
