"""The errors that tsallax raises: one line each, naming the culprit and the way out."""


class InvalidInput(ValueError):
    """Input that cannot be used, refused before any work starts."""
