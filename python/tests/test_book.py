"""The page of the book about this package does what it says: its blocks run, and print what stands below them."""

import contextlib
import io
import pathlib

import pytest

PAGE = pathlib.Path(__file__).parents[2] / "book" / "src" / "python.md"


def blocks(page: str) -> list[tuple[str, str]]:
    """What stands after the fence of each block, and its text."""
    found: list[tuple[str, str]] = []
    info: str | None = None
    lines: list[str] = []
    for line in page.splitlines():
        if not line.startswith("```"):
            lines.append(line + "\n")
            continue
        if info is not None:
            found.append((info, "".join(lines)))
        info, lines = (line[3:], []) if info is None else (None, [])
    assert info is None, "the last fence is not closed"
    return found


def test_the_page_does_what_it_says(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    printed = ""
    ran = 0
    for info, text in blocks(PAGE.read_text(encoding="utf-8")):
        kind, _, name = info.partition(" ")
        if name:
            (tmp_path / name).write_text(text, encoding="utf-8")
        elif kind == "python":
            ran += 1
            assert not printed, f"what a block prints does not stand below it: {printed}"
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(text, f"<block {ran} of the page>", "exec"), names)
            printed = out.getvalue()
        else:
            assert kind == "text", f"a block is a file, a program of Python, or what that prints: {info}"
            assert printed == text
            printed = ""
    assert not printed and ran > 5
