"""A summary as a page or a terminal may show it."""

from __future__ import annotations

import msgspec

from loadstone.results.documents.summary import Summary
from loadstone.visible import visible_tree


def visible_summary(summary: Summary) -> Summary:
    """Return a summary in which every text is made visible: see `loadstone.visible`."""
    return msgspec.convert(visible_tree(msgspec.to_builtins(summary)), Summary)
