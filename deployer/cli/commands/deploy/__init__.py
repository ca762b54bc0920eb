"""Commands that plan and apply: preview, up, destroy, drift, cost, doctor, plugin."""
