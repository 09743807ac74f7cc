"""Reading contacts and requests of ended campaigns that are in files of their own."""
