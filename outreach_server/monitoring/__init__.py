"""What a server shows of itself: metrics, and lines of the log with the ids of requests and dispatches."""
