"""The indexes of a dataset: what its versions have, and their names. Recovery and all packages above may import it."""
