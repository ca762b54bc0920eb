"""The part of the catalog's benchmark that measures datasets of recordings. `client` and `written` run in the
environment of Rerun's client."""
