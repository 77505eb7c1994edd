"""Q-learning with a table of action values."""
