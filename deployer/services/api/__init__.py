"""Management of services: the client for programs, and the status of services.

`deployer.services`, `deployer.cli`, `deployer.ui` and `spark_jobs` may import it.
"""
