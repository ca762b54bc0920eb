"""From nodes whose shape was checked to columns, indexes, services and clusters."""
