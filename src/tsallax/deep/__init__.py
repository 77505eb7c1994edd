"""Learning from samples: tabular and deep Q-learning."""
