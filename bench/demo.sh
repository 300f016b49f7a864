#!/usr/bin/env bash
# A real program, unmodified: sqlite3 reads a table in the order of a secondary index, cold: alone, for the first time under
# foreread, and again. Called by `make demo`. Where root runs it, everything is dropped from memory before each run; otherwise the
# table alone, which its owner may do. On a disk that is too fast for a gain the same is shown on the model of a network volume.
set -euo pipefail
cd "$(dirname "$0")/.."

foreread=$PWD/target/release/foreread
dir=${FOREREAD_DEMO_DIR:-target/demo}
rounds=3
# Parts of the table; orders of each; parts that are asked for.
parts=20000 each=40 asked=300
# Below this gain, in percent, the disk is called too fast for one.
least=150

fail() {
    printf 'make demo: %s\n' "$*" >&2
    exit 1
}

command -v sqlite3 >/dev/null || fail "sqlite3 is missing: apt-get install sqlite3, or make demo as root"
mkdir -p "$dir" 2>/dev/null || fail "$dir cannot be made. Type: FOREREAD_DEMO_DIR=FOLDER make demo"
dir=$(cd "$dir" && pwd)
export XDG_DATA_HOME=$dir/data
database=$dir/orders.db
query='pragma cache_size=-2000;
select printf("%.2f", sum(price * quantity)) from item indexed by item_part where part between 1000 and '$((999 + asked))';'

# The table at $database, if it is not there.
make_table() {
    [ ! -f "$database" ] || return 0
    rm -f "$database.new"
    echo 'making a table of 800,000 orders, once: some seconds'
    local why
    why=$(sqlite3 "$database.new" 2>&1 >/dev/null <<SQL
pragma page_size=4096; pragma journal_mode=off; pragma synchronous=off;
create table item(number integer primary key, part integer, quantity integer, price real, comment text);
insert into item select value, abs(random() % $parts), value % 50, (value * 7919 % 100000) / 7.0, printf('%0350d', value)
    from generate_series(1, $parts * $each);
create index item_part on item(part);
SQL
    ) || { rm -f "$database.new"; fail "a table of 350 MB cannot be made in $dir (${why##*: }). Type: FOREREAD_DEMO_DIR=FOLDER make demo"; }
    mv "$database.new" "$database"
}

# Writes the table back, and drops what is in memory: everything, or the table.
make_cold() {
    sync "$database"
    if [ -w /proc/sys/vm/drop_caches ] && echo 3 2>/dev/null >/proc/sys/vm/drop_caches; then
        dropped=everything
        return
    fi
    dropped='the table'
    dd if="$database" iflag=nocache count=0 status=none
    local left
    left=$(fincore --bytes --noheadings --output RES "$database" 2>/dev/null | tr -d ' ' || true)
    [ "${left:-0}" -le 1048576 ] || fail "the table stays in memory ($((left >> 20)) MB of it): is $dir on no disk?" \
        "Type: FOREREAD_DEMO_DIR=FOLDER make demo"
}

# timed COMMAND...: runs it, and adds its milliseconds to $times.
timed() {
    local begun=$EPOCHREALTIME answer
    answer=$("$@") || fail "$1 failed"
    local ended=$EPOCHREALTIME
    times+=($(((${ended/[.,]/} - ${begun/[.,]/}) / 1000)))
    [ "$answer" = "${expected:=$answer}" ] || fail "the answer differs: $answer, not $expected"
}

median() { printf '%s\n' "$@" | sort -n | sed -n "$(( ($# + 1) / 2 ))p"; }

# Sets $plain, $first, $again and $hot, in ms, each the median of some rounds.
measure() {
    local all_plain=() all_first=() all_again=()
    for _ in $(seq "$rounds"); do
        rm -rf "$XDG_DATA_HOME"
        times=()
        make_cold
        timed sqlite3 "$database" "$query"
        make_cold
        timed "$foreread" run --quiet -- sqlite3 "$database" "$query"
        make_cold
        timed "$foreread" run --quiet --json "$dir/run.json" -- sqlite3 "$database" "$query"
        timed sqlite3 "$database" "$query"
        all_plain+=("${times[0]}") all_first+=("${times[1]}") all_again+=("${times[2]}") hot=${times[3]}
    done
    plain=$(median "${all_plain[@]}") first=$(median "${all_first[@]}") again=$(median "${all_again[@]}")
}

# line NAME MS: one line of the chart, whose longest bar is 46 columns.
line() {
    local most=$((plain > first ? plain : first))
    local bar=$(($2 * 46 / most))
    printf '  %-20s %5d.%02d s %s\n' "$1" $(($2 / 1000)) $(($2 % 1000 / 10)) "$(printf '%*s' $((bar > 0 ? bar : 1)) '' | tr ' ' '#')"
}

chart() {
    line 'sqlite3 alone' "$plain"
    line 'foreread, first run' "$first"
    line 'foreread, second run' "$again"
    echo
}

faster() { echo "$((plain / again)).$((plain * 10 / again % 10))"; }

reads() { sed -n 's/.*"reads_seen": *\([0-9]*\).*/\1/p' "$dir/run.json" | head -n 1; }

# The same on the model of a network volume, which takes root.
on_the_model() {
    echo "This disk is too fast for a gain: sqlite3 alone takes $plain ms, and $hot from memory."
    if [ "$(id -u)" != 0 ] || [ ! -c /dev/fuse ]; then
        echo "As root, make demo shows the same on the model of a network volume."
        return
    fi
    ${CARGO:-cargo} build -q --release -p foreread-tools || fail "foreread-tools cannot be built"
    local model=$dir/model
    "$foreread" slowdisk mount network-ssd "$model" >/dev/null || fail "the model cannot be mounted"
    # shellcheck disable=SC2064
    trap "'$foreread' slowdisk umount '$model' >/dev/null" EXIT
    cp "$database" "$model/" || fail "the model has no room for the table"
    database=$model/orders.db rounds=1
    measure
    printf 'On the model of a network volume:\n\n'
    chart
    echo "There it is $(faster) times faster on the second run, with the same answer."
}

make_table
measure
echo
echo 'sqlite3 sums 12,000 of 800,000 orders by an index. Before each run'
printf '%s was dropped from memory. Medians of %d:\n\n' "$dropped" "$rounds"
chart
if [ $((plain * 100)) -lt $((again * least)) ]; then
    on_the_model
else
    echo "Gained: $(faster) times faster on the second run, with the same answer, because"
    echo "foreread knew $(reads) reads and asked the disk for many of them at once, where"
    echo 'sqlite3 alone waits for one after the other.'
fi
echo
echo 'Next, twice, with a program of yours: target/release/foreread run -- COMMAND'
