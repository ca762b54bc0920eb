"""Files on disk: written privately and whole, read with limits."""
