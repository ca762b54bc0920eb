"""The commands, one package per group of them."""
