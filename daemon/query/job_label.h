/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Labels of a task: those of its job, and those that its control group shows
 *
 *      unit         systemd's unit: "ci-build.service"
 *      container    the first 12 digits of a container's id
 *      slurm_job    the number of Slurm's job
 *      runner       github, gitlab, jenkins, buildkite or slurm, by the name of the unit or the group
 *
 * If the job has a label with one of these keys, that label takes precedence.
 */

#include "daemon/query/load.h"
#include "proto/syntax/label.h"

#define CGROUP_LABELS_MAX 4
#define JOB_LABELS_MAX (LABELS_MAX + CGROUP_LABELS_MAX)
#define JOB_LABEL_CONTAINER_DIGITS 12 /* as docker ps has it */

/* Labels that the path of a control group shows. Returns their number. Exported for tests. */
size_t cgroup_labels(const char *path, struct label ret_label[static CGROUP_LABELS_MAX]);

/* All labels of a job (JSON; NULL: none) and of its control group's path (NULL: not known), the job's first.
 * Returns their number. */
size_t labels_with_cgroup(
	const char *json, const char *path, struct label ret_label[static JOB_LABELS_MAX]);
/* The same for a loaded task. */
size_t job_labels(
	const struct loaded *l, uint32_t task, struct label ret_label[static JOB_LABELS_MAX]);
