"""A plan of some resources only: what `--target` names, and what else must change with it."""
