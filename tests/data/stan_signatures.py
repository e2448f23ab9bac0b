"""Records what stanc's library has, for the test of `src/stan/check/signatures`.

    python3 tests/data/stan_signatures.py path/to/stanc > tests/data/stan_signatures.txt

Each line is a function: its name, how many signatures it has, and the first 16 digits of the SHA-256 of them, sorted, each
with a line feed at its end, as `stanc --dump-stan-math-signatures` prints them without the name.
"""

import hashlib
import subprocess
import sys


def main():
    stanc = sys.argv[1]
    version = subprocess.run([stanc, "--version"], check=True, capture_output=True, text=True).stdout.strip()
    dump = subprocess.run([stanc, "--dump-stan-math-signatures"], check=True, capture_output=True, text=True).stdout
    functions = {}
    for line in filter(None, dump.split("\n")):
        name, rest = line.split("(", 1)
        functions.setdefault(name, []).append("(" + rest)
    print(f"# {version}: function, signatures, SHA-256 (stan_signatures.py)")
    for name in sorted(functions):
        rows = sorted(functions[name])
        digest = hashlib.sha256("".join(row + "\n" for row in rows).encode()).hexdigest()
        print(name, len(rows), digest[:16])


main()
