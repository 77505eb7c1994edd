"""The planning figures and theorems of the paper."""
