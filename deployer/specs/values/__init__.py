"""Values in specs: keys, times, schedules, roots and catalogs."""
