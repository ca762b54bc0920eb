"""From a difference to a plan: risks, causes, refusals and places of rewrites. Pure."""
