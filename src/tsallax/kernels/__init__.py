"""Compiled inner loops of planning, in float64 on the CPU (Numba)."""

import os

# Threads that wait by spinning make a solve forty times slower where other work wants the cores.
# OpenMP reads this when the first parallel kernel runs; a setting of the user's own stands.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
