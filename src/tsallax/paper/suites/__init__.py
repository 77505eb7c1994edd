"""Tables of learning beyond the paper's: agents in the environments that other libraries report."""
