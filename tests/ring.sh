#!/usr/bin/env bash
# ring.sh NAME STEP…: runs the steps of a ring of tests. Each step is a make target; all of them run even if one fails. Afterwards prints
# the slow, repeated and skipped tests, and the duration of each step.
set -uo pipefail
cd "$(dirname "$0")/.."

ring=$1
shift
mkdir -p target/tests
# Tests append lines: "time SECONDS NAME", "flaky NAME: WHY", "skipped NAME: WHY".
export FOREREAD_TEST_LOG=$PWD/target/tests/$ring.log
: >"$FOREREAD_TEST_LOG"

failed=()
took=()
begun=$SECONDS
for step in "$@"; do
    before=$SECONDS
    "${MAKE:-make}" --no-print-directory "$step" || failed+=("$step")
    took+=("$step $((SECONDS - before)) s")
done

summary() {
    printf '\n== ring %s: %d min %02d s (%s)\n' "$ring" $(((SECONDS - begun) / 60)) $(((SECONDS - begun) % 60)) \
        "$(printf '%s, ' "${took[@]}" | sed 's/, $//')"
    echo 'slowest whole-program tests:'
    grep '^time ' "$FOREREAD_TEST_LOG" | sort -k2,2nr | head -10 | awk '{ printf "%7.1f s  %s\n", $2, $3 }'
    echo "skipped: $(grep -c '^skipped ' "$FOREREAD_TEST_LOG")"
    sed -n 's/^skipped /  /p' "$FOREREAD_TEST_LOG"
    echo "flaky (repeated once): $(grep -c '^flaky ' "$FOREREAD_TEST_LOG")"
    sed -n 's/^flaky /  flaky: /p' "$FOREREAD_TEST_LOG"
    if [ ${#failed[@]} -gt 0 ]; then
        echo "failed: ${failed[*]}"
    fi
}
summary
[ ${#failed[@]} -eq 0 ]
