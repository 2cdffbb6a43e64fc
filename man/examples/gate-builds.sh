#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Record two builds of a program in turns, and say whether the second is slower: prints Markdown, and ends with
# the exit status of mperfctl gate (0 within the margin, 3 slower, 4 not enough to tell).
#
#   gate-builds.sh [-n RUNS] [-F HZ] [-o FOLDER] [-m MARGIN] BASELINE CANDIDATE [-- ARGUMENT...]
#
# FOLDER keeps the recordings, gate.md and gate.xml (JUnit). The program's output is thrown away; if it
# fails, nothing is compared. Runs of 10 s or more are best: see mperfctl-gate(1) for what can be seen.
set -eu

usage() {
	sed -n 's/^# \{0,1\}//; 3,9p' "$0" >&2
	exit 2
}

runs=10 hz=999 folder=gate margin=2%
while getopts n:F:o:m: option; do
	case $option in
	n) runs=$OPTARG ;;
	F) hz=$OPTARG ;;
	o) folder=$OPTARG ;;
	m) margin=$OPTARG ;;
	*) usage ;;
	esac
done
shift $((OPTIND - 1))
[ $# -ge 2 ] || usage
baseline=$1 candidate=$2
shift 2
[ "${1-}" != -- ] || shift

# What an earlier comparison left there would count.
rm -rf "$folder/baseline" "$folder/candidate"
mkdir -p "$folder/baseline" "$folder/candidate"

record() { # SIDE RUN PROGRAM ARGUMENT...
	to=$folder/$1/$2.mprf
	shift 2
	mperfctl record -F "$hz" -o "$to" -- "$@" >"$folder/output" 2>&1 || {
		status=$?
		cat "$folder/output" >&2
		echo "gate-builds.sh: '$*' failed (exit status $status), so nothing is compared" >&2
		exit 1
	}
}

run=1
while [ "$run" -le "$runs" ]; do
	record baseline "$run" "$baseline" "$@"
	record candidate "$run" "$candidate" "$@"
	run=$((run + 1))
done

status=0
mperfctl gate --baseline "$folder/baseline" --candidate "$folder/candidate" --max-regression "$margin" \
	--junit "$folder/gate.xml" --markdown >"$folder/gate.md" || status=$?
cat "$folder/gate.md"
exit "$status"
