"""The process that draws charts: requests come in by one line of JSON each, answers go out likewise.

The chart library carries a JavaScript engine, which ends its whole process where it meets what it cannot
work with. It wants standard streams of its own. Run as a file, so that it loads nothing of Loadstone.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

VEGA_LITE = "6.4"
BUNDLE_ENTRY = "window.vegaEmbed = vegaEmbed;"


def _svg(specification: str) -> str:
    import vl_convert  # noqa: PLC0415 - when the streams are in their places

    return str(vl_convert.vegalite_to_svg(specification, vl_version=VEGA_LITE, allowed_base_urls=[]))


def _bundle(_: None) -> str:
    import vl_convert  # noqa: PLC0415 - as above

    return str(vl_convert.javascript_bundle(BUNDLE_ENTRY, vl_version=VEGA_LITE))


_ANSWERS: dict[str, Callable[[Any], str]] = {"svg": _svg, "bundle": _bundle}


def _answer(request: dict[str, Any]) -> dict[str, str]:
    ((name, what),) = request.items()
    try:
        return {"done": _ANSWERS[name](what)}
    except Exception as error:  # noqa: BLE001 - told to the process that wants a report
        return {"failed": f"{error or type(error).__name__}"}


def main() -> None:
    """Answer requests until there are no more."""
    requests = os.fdopen(os.dup(0), "r", encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    for stream, mode in ((0, os.O_RDONLY), (1, os.O_WRONLY)):
        os.dup2(os.open(os.devnull, mode), stream)
    for line in requests:
        print(json.dumps(_answer(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
