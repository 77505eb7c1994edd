"""Exchange files of probabilistic model checkers: UMB, DRN and PRISM's explicit files."""
