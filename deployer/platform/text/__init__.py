"""Text that people read and write: numbers, sizes and durations, escapes of what others wrote, masks of secrets."""
