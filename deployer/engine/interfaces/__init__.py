"""What an engine and a provider are asked and answer."""
