"""Documents of spec files: includes, variables and overlays are resolved here."""
