"""The paper's figures, theorems and tables, computed again."""
