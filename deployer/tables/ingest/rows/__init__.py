"""From rows of files to rows of the table; rows that do not fit are set aside with their reasons."""
