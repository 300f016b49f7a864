#!/usr/bin/env bash
# The main job on a real program: sqlite3, unmodified, reads a table in the order of a secondary
# index, cold, several times: plain, recorded, and kept ahead of. Called by `make demo`.
set -euo pipefail
cd "$(dirname "$0")/.."

foreread=$PWD/target/release/foreread
dir=${FOREREAD_DEMO_DIR:-$PWD/target/demo}
rows=${FOREREAD_DEMO_ROWS:-3000000}
rounds=3
export XDG_DATA_HOME=$dir/data

command -v sqlite3 >/dev/null || { echo "demo: sqlite3 is not installed (make deps)" >&2; exit 1; }
mkdir -p "$dir"
database=$dir/orders-$rows.db
query='pragma cache_size=-2000;
select printf("%.2f", sum(price * discount)) from item indexed by item_part where part between 1000 and 1600;'

if [ ! -f "$database" ]; then
    echo "making a table of $rows rows with a secondary index ..."
    sqlite3 "$database.new" >/dev/null <<SQL
pragma page_size=4096; pragma journal_mode=off; pragma synchronous=off;
create table item(orderkey integer, part integer, supplier integer, quantity real, price real,
                  discount real, shipped integer, comment text);
insert into item select value/4, abs(random()%200000), abs(random()%10000), abs(random()%50),
    abs(random()%100000)/7.0, abs(random()%10)/100.0, 8000+abs(random()%2500),
    hex(randomblob(20+abs(random()%30))) from generate_series(1,$rows);
create index item_part on item(part);
SQL
    mv "$database.new" "$database"
fi

# Writes the file back and drops it from the page cache, and proves that it is gone.
make_cold() {
    dd if="$database" iflag=nocache count=0 conv=fdatasync status=none 2>/dev/null ||
        { sync "$database"; dd if="$database" iflag=nocache count=0 status=none; }
    local left
    left=$(fincore --bytes --noheadings --output RES "$database" 2>/dev/null || echo 0)
    if [ "${left:-0}" -gt 1048576 ]; then
        echo "demo: $database: $left bytes stay in memory; is $dir on a real disk? (FOREREAD_DEMO_DIR)" >&2
        exit 1
    fi
}

# timed NAME COMMAND...: runs it cold; leaves seconds in $seconds and its output in $answer.
timed() {
    make_cold
    local begun=$EPOCHREALTIME
    answer=$("${@:2}")
    local ended=$EPOCHREALTIME
    seconds=$(awk -v a="$begun" -v b="$ended" 'BEGIN { printf "%.3f", b - a }')
    printf '  %-34s %8s s   answer %s\n' "$1" "$seconds" "$answer"
}

median() { printf '%s\n' "$@" | sort -n | sed -n "$(( ($# + 1) / 2 ))p"; }

# Why it is faster, from the figures of the record and of the run that is in run.json.
why() {
    "$foreread" show --json -- sqlite3 "$database" "$query" >"$dir/record.json"
    local at_once
    at_once=$(grep -om1 '[0-9]* at once' "$dir/run.json" || echo "several at once")
    sqlite3 :memory: <<SQL | fold -s -w 80 | sed 's, $,,'
create table record as select
    readfile('$dir/record.json') as record, readfile('$dir/run.json') as run;
select printf('Recorded, sqlite3 spent %d of %d ms in reads, waiting for one after the other: ' ||
        'of %d reads of the table %d did not begin where the one before had ended, and the kernel ' ||
        'cannot guess such reads.',
    record ->> '\$.summary.read_ns' / 1000000, record ->> '\$.summary.wall_ns' / 1000000,
    file.value ->> 'reads', round((file.value ->> 'reads') * (1 - (file.value ->> 'sequential_share'))))
from record, json_each(record, '\$.files') as file where file.value ->> 'path' like '%.db';
select printf('This run knew %d of its %d reads beforehand and asked the disk for up to $at_once: it took %d ms.',
    run ->> '\$.foreseen', run ->> '\$.reads', run ->> '\$.wall_ns' / 1000000)
from record where run ->> '\$.mode' = 'prefetched';
SQL
}

"$foreread" forget --all >/dev/null 2>&1 || true
echo
echo "sqlite3 sums $(numfmt --to=iec "$(stat -c %s "$database")") of orders by secondary index; the file is cold each time"
plain=() ahead=()
timed "sqlite3, plain" sqlite3 "$database" "$query"
expected=$answer
plain+=("$seconds")
timed "foreread run: records" "$foreread" run --quiet -- sqlite3 "$database" "$query"
for _ in $(seq $rounds); do
    timed "sqlite3, plain" sqlite3 "$database" "$query"
    plain+=("$seconds")
    timed "foreread run: keeps ahead" "$foreread" run -- sqlite3 "$database" "$query"
    ahead+=("$seconds")
    [ "$answer" = "$expected" ] || { echo "demo: the answer differs: $answer, not $expected" >&2; exit 1; }
done
awk -v p="$(median "${plain[@]}")" -v a="$(median "${ahead[@]}")" \
    'BEGIN { printf "\n  %.1f times faster from the second run on, with the same answer\n", p/a
             printf "  (medians: %.3f s against %.3f s)\n\n", a, p }'
make_cold
echo "why: what one more run knew, and what became of it"
"$foreread" run --explain --json "$dir/run.json" -- sqlite3 "$database" "$query" >/dev/null
echo
why
echo
"$foreread" show -- sqlite3 "$database" "$query"
