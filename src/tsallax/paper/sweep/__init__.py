"""The paper's sweeps: their tasks and variants, what to train, the jobs, and the runs as rows."""
