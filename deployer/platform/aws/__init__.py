"""AWS without a service of its own: sessions, error codes, names, ARNs and calls with retries."""
