"""Deep Q-learning and DDPG: agents, fleets and their training loops."""
