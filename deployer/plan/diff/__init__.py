"""The difference between what is declared and what is live. Pure."""
