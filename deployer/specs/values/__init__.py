"""Values in specs: keys, times, sizes, durations and schedules."""
