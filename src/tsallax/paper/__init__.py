"""The paper's planning figures and theorems again: `reproduce` writes them with all their data.

>>> from tsallax.paper import NAMES
>>> NAMES
('figure1', 'figure2a', 'figure2b', 'theorems')
"""

from tsallax.paper.report import NAMES, reproduce
from tsallax.paper.result import BoundViolated, Comparison, Picture, Result, Table

__all__ = ["NAMES", "BoundViolated", "Comparison", "Picture", "Result", "Table", "reproduce"]
