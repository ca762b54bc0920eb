"""The machine that runs deployer: clock, user, processes, signals and failpoints."""
