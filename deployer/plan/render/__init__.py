"""A plan for people and tools: terminal, Markdown, HTML and JSON. Pure."""
