"""The times when services run: conditions, schedules, status and forecasts.

`deployer.services.agent` and every layer above `deployer.services` may import it.
"""
