#!/bin/sh
# test.sh BUILD: the programs read the same bricks as the paper's programs, and compute the right results.
set -eu
build=$1
data=$(mktemp -d)
trap 'rm -r "$data"' EXIT
failed=0

# check WHAT PATTERN: the pattern matches the printed line.
check() {
    if printf '%s\n' "$said" | grep -q -- "$2"; then
        echo "ok      $1"
    else
        echo "FAILED  $1: $said, and not $2"
        failed=1
    fi
}

for brick in 16 32; do
    "$build/generate" volume $brick "$data/volume$brick"
done
said=$("$build/raycast" "$data/volume16")
check 'Vol Vis 1: 4096 bricks of a page' ' 4096 bricks'
straight=${said%% *}
said=$("$build/raycast" -v 17,17,18 "$data/volume16")
check 'Vol Vis 2: 3714' ' 3714 bricks'
said=$("$build/raycast" -b 32 "$data/volume32")
check 'Vol Vis 3: 512 bricks of eight pages' ' 512 bricks'
said=$("$build/raycast" -b 32 -v 17,17,18 "$data/volume32")
check 'Vol Vis 4: 482' ' 482 bricks'
said=$("$build/raycast-early" "$data/volume16")
check 'the image is the same when no ray ends early' "^$straight 4096"
said=$("$build/raycast-early" -t 0.1 "$data/volume16" | grep -c -e ' 4096 ' || true)
check 'with early termination bricks are left out' '^0$'

said=$("$build/profile" "$data/volume16")
check 'the profile is of all bricks' ' 4096 bricks'
whole=$said
said=$("$build/profile" -c 0,0,0 "$data/volume16")
check 'and depends on where it begins' "^[0-9a-f]* 4096 bricks"
test "$said" != "$whole" || { echo "FAILED  another centre, the same profile"; failed=1; }

"$build/generate" points 14 "$data/points"
said=$("$build/fft" 14 "$data/points")
check 'the transform finds the tones' ': 2048 (3.000), 3276 (2.000), 5461 (1.000);'
"$build/generate" points 14 "$data/points"
said=$("$build/fft" -k 3 14 "$data/points")
check 'and however often it calculates' ': 2048 (3.000), 3276 (2.000), 5461 (1.000);'

"$build/generate" film 1 "$data/film"
said=$("$build/video" "$data/film")
check 'the player sees each block' ' 256 blocks'
said=$("$build/video" -b -s 8192 "$data/film")
check 'or every other, from the end' ' 128 blocks'

said=$("$build/bricks" -s 64 -n 64 -v 0,0,1 "$data/film")
check 'straight through, each brick is read once' ' 64 bricks'
said=$("$build/bricks" -s 64 -n 16 "$data/film")
check 'obliquely some are not' ' 45 bricks'
"$build/generate" index 1 "$data/index"
said=$("$build/rows" "$data/index" "$data/film")
check 'an index leads to an eighth of the pages' ' 32 rows'
exit $failed
