#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Hook of a self-hosted runner of GitHub Actions: labels each job. Copy it to a folder outside of the runner's, and
# add a line to the file .env in the runner's, then restart the runner:
#
#   ACTIONS_RUNNER_HOOK_JOB_STARTED=/opt/mperf/job-started.sh
#
# The runner starts a worker for each job, which starts this script and then the job's steps: the worker is
# what is labelled. Steps in containers are started by somebody else; mperf.conf in the folder above has labels for
# them. A job must not fail because nobody profiles it, so the exit status is always 0.
# Source: docs.github.com, "Running scripts before or after a job".
head=${GITHUB_HEAD_REF:-$GITHUB_REF_NAME} # of a pull request the branch that it comes from
mperfctl job start "$GITHUB_JOB" --pid "$PPID" \
	--label "run=$GITHUB_RUN_ID.$GITHUB_RUN_ATTEMPT" \
	--label "branch=$head" \
	--label "commit=$GITHUB_SHA" \
	--label "repository=$GITHUB_REPOSITORY" ||
	echo "::warning::mperf: this job has no labels"
exit 0
