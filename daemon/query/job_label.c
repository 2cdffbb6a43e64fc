/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/query/job_label.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define ID_DIGITS_MIN 32 /* of a container; Docker, Podman, containerd and CRI-O have 64 */

/* Units of runners, as their own installation names them.
 * Source: actions/runner, svc.sh of its Linux package (actions.runner.ORG-REPO.NAME.service);
 * docs.gitlab.com, Runner, "Linux services" (gitlab-runner.service); Debian's and upstream's package
 * jenkins (jenkins.service); buildkite-agent's package (buildkite-agent.service, also with @N). */
static const struct {
	const char *begins, *runner;
} runners[] = {
	{"actions.runner.", "github"},
	{"gitlab-runner", "gitlab"},
	{"jenkins", "jenkins"},
	{"buildkite-agent", "buildkite"},
};

struct found {
	struct label *label;
	size_t n;
};

static void add(struct found *f, const char *key, const char *value, size_t n_value)
{
	struct label_fault fault;
	char text[LABEL_VALUE_BYTES_MAX + 1];
	snprintf(text, sizeof(text), "%.*s", (int)n_value, value);
	for (size_t i = 0; i < f->n; i++) {
		if (strcmp(f->label[i].key, key) != 0)
			continue;
		(void)label_make(key, text, &f->label[i], &fault); /* the innermost counts */
		return;
	}
	if (f->n < CGROUP_LABELS_MAX)
		f->n += label_make(key, text, &f->label[f->n], &fault) == 0;
}

static bool ends_in(const char *part, size_t n, const char *end)
{
	size_t n_end = strlen(end);
	return n > n_end && strncmp(part + n - n_end, end, n_end) == 0;
}

static size_t n_hex(const char *part, size_t n)
{
	size_t i = 0;
	while (i < n && isxdigit((unsigned char)part[i]))
		i++;
	return i;
}

/* "docker-ID.scope", "cri-containerd-ID.scope", "libpod-ID", "ID". Source: cgroup drivers of runc and
 * crun, "Cgroup path" in their documentation. */
static void take_container(struct found *f, const char *part, size_t n)
{
	for (const char *p = part; p < part + n; p++) {
		size_t digits = n_hex(p, (size_t)(part + n - p));
		bool begins = p == part || p[-1] == '-';
		bool ends = p + digits == part + n || p[digits] == '.';
		if (begins && ends && digits >= ID_DIGITS_MIN) {
			add(f, "container", p, JOB_LABEL_CONTAINER_DIGITS);
			return;
		}
	}
}

/* Source: slurm.schedmd.com/cgroup_v2.html, "Slurm cgroup v2 hierarchy": …/job_N/step_N/…; version 1:
 * /slurm/uid_N/job_N. */
static void take_slurm(struct found *f, const char *part, size_t n)
{
	size_t digits = 0;
	while (4 + digits < n && isdigit((unsigned char)part[4 + digits]))
		digits++;
	if (n > 4 && strncmp(part, "job_", 4) == 0 && 4 + digits == n) {
		add(f, "slurm_job", part + 4, digits);
		add(f, "runner", "slurm", strlen("slurm"));
	}
}

static void take_unit(struct found *f, const char *part, size_t n)
{
	if (!ends_in(part, n, ".service"))
		return;
	add(f, "unit", part, n);
	for (size_t i = 0; i < sizeof(runners) / sizeof(*runners); i++)
		if (strncmp(part, runners[i].begins, strlen(runners[i].begins)) == 0)
			add(f, "runner", runners[i].runner, strlen(runners[i].runner));
}

size_t cgroup_labels(const char *path, struct label ret_label[static CGROUP_LABELS_MAX])
{
	struct found f = {ret_label, 0};
	bool slurm = path && strstr(path, "slurm");
	while (path && *path) {
		path += strspn(path, "/");
		size_t n = strcspn(path, "/");
		take_unit(&f, path, n);
		take_container(&f, path, n);
		if (slurm)
			take_slurm(&f, path, n);
		path += n;
	}
	return f.n;
}

size_t labels_with_cgroup(
	const char *json, const char *path, struct label ret_label[static JOB_LABELS_MAX])
{
	struct label shown[CGROUP_LABELS_MAX];
	size_t n = labels_read(json, ret_label);
	size_t n_shown = cgroup_labels(path, shown);
	size_t n_job = n;
	for (size_t i = 0; i < n_shown; i++) {
		bool has = false;
		for (size_t k = 0; k < n_job; k++)
			has |= strcmp(ret_label[k].key, shown[i].key) == 0;
		if (!has)
			ret_label[n++] = shown[i];
	}
	return n;
}

size_t job_labels(
	const struct loaded *l, uint32_t task, struct label ret_label[static JOB_LABELS_MAX])
{
	return labels_with_cgroup(text_of(l->texts, l->task[task].labels),
		text_of(l->texts, l->task[task].cgroup), ret_label);
}
