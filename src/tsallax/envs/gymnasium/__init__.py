"""Gymnasium environments as learners need them."""
