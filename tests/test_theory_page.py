"""The manual's page on theory: its blocks run one after the other, and it lists every claim."""

import re
from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot

from dectool.theory import claims

mpl.use("Agg")

PAGE = (Path(__file__).resolve().parent.parent / "docs/theory.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_blocks_run():
    names = {"__name__": "theory_page"}
    try:
        for block in BLOCKS:
            exec(compile(block, "docs/theory.md", "exec"), names)
    finally:
        pyplot.close("all")
    assert names["agreement"].verdict
    assert names["found"].verdict


def test_every_claim_is_listed_once():
    assert sorted(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)) == sorted(claims.__all__)
