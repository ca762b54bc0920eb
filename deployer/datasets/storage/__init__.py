"""The places of datasets, Lance's access to them, and the removal of their files."""
