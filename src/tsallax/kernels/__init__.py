"""Compiled inner loops of planning, in float64 on the CPU (Numba)."""
