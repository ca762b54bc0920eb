"""What each kind of transaction requires, and so which of two concurrent ones is refused."""
