"""The paper's figures, theorems and tables again: `reproduce` writes them with all their data.

>>> from tsallax.paper import NAMES
>>> NAMES
('figure1', 'figure2a', 'figure2b', 'theorems')
"""

from tsallax.paper.report import NAMES, reproduce, write_page, write_report
from tsallax.paper.result import BoundViolated, Comparison, Picture, Result, Table

__all__ = [
    "NAMES",
    "BoundViolated",
    "Comparison",
    "Picture",
    "Result",
    "Table",
    "reproduce",
    "write_page",
    "write_report",
]
