"""What the sweeps of the paper and the suites share: rows, files of fleets, processes."""
