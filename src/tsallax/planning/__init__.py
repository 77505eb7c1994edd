"""Finite Markov decision processes: models, solvers, evaluation."""
