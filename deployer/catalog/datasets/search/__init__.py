"""Search in a dataset: the instances of a component, and indexes of them."""
