"""Training the paper's algorithms: what to run, the runs as rows, and where they are made."""
