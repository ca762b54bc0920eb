"""The kinds of services: what each one does, one package or module per kind."""
