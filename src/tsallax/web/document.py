"""One HTML file without others: its style and script inside, and a policy that allows no more.

The content security policy of the page allows its own style and script alone, and no request.
"""

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files

ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E"
    "%3Cpath d='M2 3v11h12M4 11c4 0 4-7 9-7' fill='none' stroke='%230b7cc9' stroke-width='2'/%3E"
    "%3C/svg%3E"
)


def render_document(
    title: str, body: str, *, styles: Sequence[str] = (), scripts: Sequence[str] = ()
) -> str:
    """The HTML of a page: `body`, with the common style and script and those of the page itself.

    >>> "<title>A page</title>" in render_document("A page", "<main></main>")
    True
    """
    style = "".join((asset("tsallax.web", "page.css"), *styles))
    script = "".join((asset("tsallax.web", "page.js"), *scripts))
    policy = (
        f"default-src 'none'; img-src data:; style-src {_hash(style)}; "
        f"script-src {_hash(script)}; base-uri 'none'; form-action 'none'"
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<link rel="icon" href="{ICON}">
<style>{style}</style>
</head>
<body>
{body}
<script type="module">{script}</script>
</body>
</html>
"""


def asset(package: str, name: str) -> str:
    """The text of a file that comes with a package."""
    return (files(package) / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
