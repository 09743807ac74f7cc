"""Erasing people: whole campaigns, one person, and what is older than a workspace keeps."""
