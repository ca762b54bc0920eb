"""Property values, resources and URNs as the engine holds them. The other packages of `engine` may import it."""
