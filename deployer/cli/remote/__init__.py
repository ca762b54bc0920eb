"""Jobs on clusters that commands start, follow and cancel."""
