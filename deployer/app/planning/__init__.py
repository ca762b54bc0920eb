"""Plans of a project's stack: made, checked on data, judged by policies, kept in files."""
