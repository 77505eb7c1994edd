"""Figures that follow the reader's choice of light or dark: other colours for Matplotlib's SVG."""

DARK = {
    "#ffffff": "#0f1419",
    "#000000": "#e6edf3",
    "#595959": "#9aa4af",
    "#d9d9d9": "#343b44",
    "#ededed": "#181e25",
    "#0072b2": "#56b4e9",
    "#d55e00": "#ff9950",
}
"""The colours of figures on paper, and what they become on a dark page."""


def follow_scheme(svg: str) -> str:
    """The SVG with a style for dark pages, as an image in a page has it.

    >>> "prefers-color-scheme: dark" in follow_scheme('<svg width="1pt"><g/></svg>')
    True
    """
    rules = "".join(
        f'[style*="{kind}: {light}"]{{{kind}:{dark}!important}}'
        for light, dark in DARK.items()
        for kind in ("fill", "stroke")
    )
    style = f"@media (prefers-color-scheme: dark){{svg{{fill:{DARK['#000000']}}}{rules}}}"
    begin = svg.find("<svg")
    end = svg.find(">", begin) + 1
    if begin < 0 or end == 0:
        return svg
    return f"{svg[:end]}<style>{style}</style>{svg[end:]}"
