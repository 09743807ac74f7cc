"""What HTTP adapters share: exactly one request, outcome classes, signatures."""
