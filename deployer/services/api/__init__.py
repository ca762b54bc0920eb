"""What people and programs do to services: the client, and what is shown of services."""
