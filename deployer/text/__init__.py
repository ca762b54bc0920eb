"""Text that people read: formatted numbers, escapes of what others wrote, masks of secrets."""
