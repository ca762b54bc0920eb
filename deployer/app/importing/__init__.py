"""Tables that exist already, taken under management."""
