#!/usr/bin/env python3
"""Prints the table of crates of DEPENDENCIES.md, of what Cargo.lock has, with the words that the page has for each:

    tests/scripts/dependencies.py

It asks `cargo metadata`, whose crates must have been downloaded: their sizes are those of the unpacked sources. A test
compares names, versions and the number of all crates with Cargo.lock.
"""

import collections
import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def words() -> dict[str, str]:
    """What the page says of each crate."""
    rows = [line.split("|") for line in (ROOT / "DEPENDENCIES.md").read_text(encoding="utf-8").splitlines()]
    return {row[1].strip(): row[5].strip() for row in rows if len(row) == 9}


def main() -> None:
    command = ["cargo", "metadata", "--locked", "--offline", "--format-version", "1"]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node["deps"] for node in metadata["resolve"]["nodes"]}
    own = set(metadata["workspace_members"])

    def brought(package: str) -> int:
        """Further crates that it needs, to build it too, on whatever platform."""
        seen, open_ends = {package}, [package]
        while open_ends:
            for dep in nodes[open_ends.pop()]:
                if dep["pkg"] not in seen and any(kind["kind"] != "dev" for kind in dep["dep_kinds"]):
                    seen.add(dep["pkg"])
                    open_ends.append(dep["pkg"])
        return len(seen) - 1

    def kilobytes(package: str) -> int:
        files = pathlib.Path(packages[package]["manifest_path"]).parent.rglob("*")
        return round(sum(file.stat().st_size for file in files if file.is_file() and file.name != ".cargo-ok") / 1000)

    users: dict[str, set[str]] = collections.defaultdict(set)
    for member in own:
        name = packages[member]["name"].removeprefix("autobatch").removeprefix("-")
        for dep in nodes[member]:
            for kind in dep["dep_kinds"]:
                where = {"dev": "tests", "build": "build"}.get(kind["kind"] or "", "")
                users[dep["pkg"]].add(" ".join(part for part in (name, where) if part) or "autobatch")
    said = words()
    print("| crate | version | licence | by | what for | kB | further |\n|---|---|---|---|---|---|---|")
    for package in sorted(set(users) - own, key=lambda package: packages[package]["name"]):
        p = packages[package]
        by = ", ".join(sorted(users[package]))
        licence = " OR ".join(part.strip() for part in p["license"].split("/"))
        row = [p["name"], p["version"], licence, by, said.get(p["name"], ""), kilobytes(package), brought(package)]
        print("|", " | ".join(map(str, row)), "|")
    print(f"\n{len(packages) - len(own)} crates in all, with these licences:\n")
    licences = collections.Counter(
        " OR ".join(sorted(part.strip() for part in package["license"].replace("/", " OR ").split(" OR ")))
        for package in packages.values()
        if package["id"] not in own
    )
    for licence, count in licences.most_common():
        print(f"- {licence}: {count}")


if __name__ == "__main__":
    main()
