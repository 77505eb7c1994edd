"""A page allows its own style and script, and nothing else."""

import re
from base64 import b64encode
from hashlib import sha256

from tsallax.web.document import asset, render_document


def test_the_policy_names_the_style_and_the_script_of_the_page():
    text = render_document("A < B", "<main></main>", styles=["b {}"], scripts=["say('x')"])
    policy = re.search(r'Security-Policy" content="([^"]*)"', text)[1]
    for tag, last in (("style", "b {}"), ("script", "say('x')")):
        inside = re.search(rf"<{tag}[^>]*>(.*?)</{tag}>", text, re.S)[1]
        assert inside.endswith(last)
        assert inside.startswith(asset("tsallax.web", f"page.{'css' if tag == 'style' else 'js'}"))
        digest = b64encode(sha256(inside.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert "<title>A &lt; B</title>" in text
