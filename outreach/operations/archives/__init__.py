"""Contacts and requests of ended campaigns in files of their own: moved there, read from there, erased there."""
