#!/bin/sh
# Looks for races among the threads of a GPU where lanes meet, without a GPU: the text for one runs on threads of the host
# (`--device cuda-threads`) under ThreadSanitizer. Of what that finds only what is in our text counts: the rest of the process is
# not compiled for it. Wants a built `target/debug/autobatch`, and GCC with its ThreadSanitizer.
set -eu
cd "$(dirname "$0")/../.."
program=${AUTOBATCH:-target/debug/autobatch}
library=$(gcc -print-file-name=libtsan.so)
if [ ! -e "$library" ]; then
    echo "skipped: gcc has no ThreadSanitizer here"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
awk -v w="$work/w.json" -v steps="$work/steps.json" 'BEGIN {
    srand(1); n = 530; d = 8; lanes = 40
    printf "{\"x\": ["
    for (i = 0; i < n; i++) { printf i ? ", [" : "["; for (j = 0; j < d; j++) printf "%s%.6f", j ? ", " : "", rand() - 0.5; printf "]" }
    printf "], \"y\": ["
    for (i = 0; i < n; i++) printf "%s%d.0", i ? ", " : "", rand() < 0.5
    print "]}"
    printf "[" > w; printf "[" > steps
    for (l = 0; l < lanes; l++) {
        printf l ? ", [" : "[" > w; for (j = 0; j < d; j++) printf "%s%.6f", j ? ", " : "", rand() - 0.5 > w; printf "]" > w
        printf "%s%d", l ? ", " : "", l % 3 > steps
    }
    print "]" > w; print "]" > steps
}' > "$work/data.json"
mkdir -m 700 "$work/cache"
run() {
    "$program" run benches/gpu/meets.ab --data "$work/data.json" --input "w=@$work/w.json" --input "steps=@$work/steps.json" "$@"
}
run > "$work/wanted" 2> "$work/notes"
TSAN_OPTIONS="exitcode=0" AUTOBATCH_CACHE="$work/cache" AUTOBATCH_CC="${CC:-gcc} -fsanitize=thread -g -O1" LD_PRELOAD="$library" \
    run --device cuda-threads > "$work/found" 2> "$work/report"
cmp "$work/wanted" "$work/found"
# A report of ours has a line of our text among its frames.
races=$(awk '/WARNING: ThreadSanitizer/ { ours = 0 } /#[0-9]+ .*body\.c:/ { ours = 1 } /SUMMARY: ThreadSanitizer/ && ours { n++ } END { print n + 0 }' "$work/report")
echo "races in the text for a GPU: $races"
[ "$races" -eq 0 ]
