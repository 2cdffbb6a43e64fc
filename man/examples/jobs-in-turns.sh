#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Run a command in the folders of two branches in turns, each run a job with labels, and ask the gate about
# them: prints Markdown, and ends with the exit status of mperfctl gate (0 within the margin, 3 slower, 4 not
# enough to tell), or with 1 if the command failed.
#
#   jobs-in-turns.sh [-n RUNS] [-j NAME] [-m MARGIN] BASELINE CANDIDATE -- COMMAND...
#
# The folders, such as git worktrees, have the names of their branches. What the command and all that it starts did is
# in the service's store, with jobs of earlier days: mperfctl hotspots --since -7d --by job
set -eu

usage() {
	sed -n 's/^# \{0,1\}//; 3,10p' "$0" >&2
	exit 2
}

runs=20 name=check margin=2%
while getopts n:j:m: option; do
	case $option in
	n) runs=$OPTARG ;;
	j) name=$OPTARG ;;
	m) margin=$OPTARG ;;
	*) usage ;;
	esac
done
shift $((OPTIND - 1))
[ "${3-}" = -- ] || usage
[ $# -ge 4 ] || usage
baseline=$1 candidate=$2
shift 3

job() { # FOLDER COMMAND...
	(
		cd "$1"
		shift
		exec mperfctl job run "$name" --label "branch=$(basename "$PWD")" -- "$@"
	) || {
		echo "jobs-in-turns.sh: the command failed in $1, so nothing is compared" >&2
		exit 1
	}
}

run=1
while [ "$run" -le "$runs" ]; do
	job "$baseline" "$@" >&2
	job "$candidate" "$@" >&2
	run=$((run + 1))
done

side() { # FOLDER
	echo "job=$name,branch=$(basename "$1"),last=$runs"
}
mperfctl gate --baseline "$(side "$baseline")" --candidate "$(side "$candidate")" --max-regression "$margin" \
	--markdown
