"""When services run: conditions, schedules, status and forecasts."""
