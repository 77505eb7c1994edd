"""What all pages share: the document, its style and its script."""
