"""What people and programs do to services: the client, and what is shown of services.

`deployer.services`, `deployer.cli`, `deployer.ui` and `spark_jobs` may import it.
"""
