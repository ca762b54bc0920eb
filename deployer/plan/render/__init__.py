"""Renders a plan for people and tools: terminal, Markdown, HTML and JSON. Pure.

Every layer above `deployer.plan` may import it.
"""
