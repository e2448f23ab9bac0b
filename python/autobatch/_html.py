"""Pieces of HTML for notebooks."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence


def preformatted(text: str) -> str:
    """A text as it is."""
    return f'<pre style="line-height:1.2">{html.escape(text)}</pre>'


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first column is text and whose others are numbers."""

    def line(cells: Sequence[str], tag: str) -> str:
        style = [' style="text-align:left"'] + [' style="text-align:right"'] * len(cells)
        return "<tr>" + "".join(f"<{tag}{s}>{html.escape(c)}</{tag}>" for c, s in zip(cells, style)) + "</tr>"

    body = "".join(line(row, "td") for row in rows)
    return f"<table><thead>{line(headings, 'th')}</thead><tbody>{body}</tbody></table>"


def items(texts: Sequence[str]) -> str:
    """A list; nothing of no texts."""
    return "<ul>" + "".join(f"<li>{html.escape(text)}</li>" for text in texts) + "</ul>" if texts else ""


def bar(part: float, text: str) -> str:
    """How far something is."""
    percent = 100 * min(max(part, 0.0), 1.0)
    return (
        f'<div style="width:28em;background:#ddd;border-radius:3px"><div style="width:{percent:.1f}%;background:#4a7fb5;'
        f'height:0.7em;border-radius:3px"></div></div><div>{html.escape(text)}</div>'
    )
