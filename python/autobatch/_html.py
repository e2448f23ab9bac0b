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


def bars(rows: Sequence[tuple[str, float, str]], text: str) -> str:
    """How far several things are, each with its name and words, and a line below."""

    def row(name: str, part: float, words: str) -> str:
        percent = 100 * min(max(part, 0.0), 1.0)
        return (
            f'<tr><td style="text-align:left">{html.escape(name)}</td><td><div style="width:12em;background:#8884;border-radius:3px">'
            f'<div style="width:{percent:.1f}%;background:#4a7fb5;height:0.7em;border-radius:3px"></div></div></td>'
            f'<td style="text-align:left">{html.escape(words)}</td></tr>'
        )

    return f"<table>{''.join(row(*r) for r in rows)}</table><div>{html.escape(text)}</div>"


def bar(part: float, text: str) -> str:
    """How far something is."""
    percent = 100 * min(max(part, 0.0), 1.0)
    return (
        f'<div style="width:28em;background:#ddd;border-radius:3px"><div style="width:{percent:.1f}%;background:#4a7fb5;'
        f'height:0.7em;border-radius:3px"></div></div><div>{html.escape(text)}</div>'
    )
