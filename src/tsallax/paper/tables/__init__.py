"""Tables, figures and verdicts from the rows of a sweep."""
