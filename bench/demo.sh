#!/usr/bin/env bash
# The main job on a real program: sqlite3, unmodified, reads a table in the order of a secondary
# index, cold, several times: plain, recorded, and kept ahead of. Called by `make demo`. Needs no root:
# whoever owns a file may drop it from memory.
set -euo pipefail
cd "$(dirname "$0")/.."

foreread=target/release/foreread
dir=${FOREREAD_DEMO_DIR:-target/demo}
rows=${FOREREAD_DEMO_ROWS:-3000000}
rounds=3
export XDG_DATA_HOME=$PWD/target/demo/data
case $dir in /*) XDG_DATA_HOME=$dir/data ;; esac

fail() {
    printf 'demo: %s\n' "$*" | fold -s -w 80 | sed 's, *$,,' >&2
    exit 1
}

command -v sqlite3 >/dev/null || fail "sqlite3 is not installed; make demo would see to it"
mkdir -p "$dir" || fail "$dir cannot be made: name another folder, FOREREAD_DEMO_DIR=FOLDER make demo"
database=$dir/orders-$rows.db
query='pragma cache_size=-2000;
select printf("%.2f", sum(price * discount)) from item indexed by item_part where part between 1000 and 1600;'

if [ ! -f "$database" ]; then
    echo "making a table of $rows orders with a secondary index, once (half a minute)"
    rm -f "$database.new"
    sqlite3 "$database.new" >/dev/null <<SQL || fail "the table could not be made in $dir (is the disk full?)"
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

# Bytes of the table that are in memory; nothing where there is no fincore to say so.
in_memory() {
    fincore --bytes --noheadings --output RES "$database" 2>/dev/null | tr -d ' '
}

# Writes the table back and drops it from the page cache, and proves that it is gone.
make_cold() {
    dd if="$database" iflag=nocache count=0 conv=fdatasync status=none 2>/dev/null ||
        { sync "$database"; dd if="$database" iflag=nocache count=0 status=none; }
    local left
    left=$(in_memory || true)
    if [ "${left:-0}" -gt 1048576 ] && [ -w /proc/sys/vm/drop_caches ]; then
        sync
        echo 1 >/proc/sys/vm/drop_caches
        left=$(in_memory || true)
    fi
    [ "${left:-0}" -le 1048576 ] || fail "the table cannot be dropped from memory: $((left >> 20)) MiB stay." \
        "Is $dir on a disk? FOREREAD_DEMO_DIR=FOLDER make demo uses another folder."
}

# timed NAME COMMAND...: runs it cold; leaves seconds in $seconds and its output in $answer.
timed() {
    make_cold
    local begun=$EPOCHREALTIME
    answer=$("${@:2}")
    local ended=$EPOCHREALTIME
    seconds=$(awk -v a="${begun/,/.}" -v b="${ended/,/.}" 'BEGIN { printf "%.3f", b - a }')
    printf '  %-32s %8s s   answer %s\n' "$1" "$seconds" "$answer"
}

median() { printf '%s\n' "$@" | sort -n | sed -n "$(( ($# + 1) / 2 ))p"; }

# Why the last run was faster, and what became of what was fetched for it: from the record, and from the run's account.
why() {
    "$foreread" show --json -- sqlite3 "$database" "$query" >"$dir/record.json"
    sqlite3 :memory: <<SQL | fold -s -w 80 | sed 's/ *$//'
create table record as select
    readfile('$dir/record.json') as record, readfile('$dir/run.json') as run;
select printf('Alone, sqlite3 waits for one read after the other: %d of %d ms when it was recorded. ' ||
        'Of its %d reads of the table, %d do not begin where the one before ended, and the kernel ' ||
        'cannot guess those.' || char(10),
    record ->> '\$.summary.read_ns' / 1000000, record ->> '\$.summary.wall_ns' / 1000000,
    file.value ->> 'reads', round((file.value ->> 'reads') * (1 - (file.value ->> 'sequential_share'))))
from record, json_each(record, '\$.files') as file where file.value ->> 'path' like '%.db';
select printf('Of the last run, foreread knew %d of %d reads beforehand, and asked the disk for many at once. ' ||
        'Of %.1f MiB that it fetched,', run ->> '\$.foreseen', run ->> '\$.reads_seen',
        (run ->> '\$.ledger.issued') / 1048576.0) from record where run ->> '\$.mode' = 'prefetched';
select printf('  %6.1f MiB %-8s %s', (run ->> ('\$.ledger.' || name)) / 1048576.0, name, means)
from record, (select 1 as n, 'useful' as name, 'were in memory when sqlite3 read them' as means
    union select 2, 'late', 'were still on their way'
    union select 3, 'infill', 'lay between others, and were quicker read than skipped'
    union select 4, 'wasted', 'were never read'
    union select 5, 'evicted', 'had left memory again')
where run ->> '\$.mode' = 'prefetched' order by n;
select 'In the last run foreread did not help: ' || (run ->> '\$.reason')
from record where run ->> '\$.mode' <> 'prefetched';
SQL
}

"$foreread" forget --all >/dev/null 2>&1 || true
cat <<TEXT

sqlite3 sums $(numfmt --to=iec "$(stat -c %s "$database")") of orders in the order of a secondary index. Before each
run the table is dropped from memory, so that all of it comes from the disk.

TEXT
plain=() ahead=()
timed "sqlite3 alone" sqlite3 "$database" "$query"
expected=$answer
plain+=("$seconds")
timed "foreread run, first: records" "$foreread" run --quiet -- sqlite3 "$database" "$query"
for _ in $(seq $rounds); do
    timed "sqlite3 alone" sqlite3 "$database" "$query"
    plain+=("$seconds")
    timed "foreread run, again: fetches" "$foreread" run --quiet --json "$dir/run.json" -- sqlite3 "$database" "$query"
    ahead+=("$seconds")
    [ "$answer" = "$expected" ] || fail "the answer differs: $answer, not $expected"
done
echo
awk -v p="$(median "${plain[@]}")" -v a="$(median "${ahead[@]}")" 'BEGIN {
    if (p / a >= 1.1)
        printf "Gained: %.1f times faster from the second run on, with the same answer.\n", p / a
    else
        printf "Nothing gained: this disk answers sqlite3 nearly as fast as memory does.\n"
    printf "(Medians: %.3f s with foreread, %.3f s alone.)\n", a, p }'
echo
if sqlite3 :memory: "select '{}' ->> '\$'" >/dev/null 2>&1; then
    why
    echo
fi
case $XDG_DATA_HOME in
    "$PWD"/*) store="\$PWD${XDG_DATA_HOME#"$PWD"}" ;;
    *) store=$XDG_DATA_HOME ;;
esac
cat <<TEXT
Next, with a program of yours that reads what is not in memory, run it twice:
  $foreread run -- COMMAND
What this machine offers, and what the demo recorded, with a picture of it:
  $foreread doctor
  XDG_DATA_HOME=$store $foreread show
TEXT
