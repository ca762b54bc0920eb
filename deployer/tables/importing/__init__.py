"""Tables from data that exists already: columns and keys are inferred, datasets are adopted."""
