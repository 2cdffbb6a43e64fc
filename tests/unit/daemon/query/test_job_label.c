/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/query/job_label.c, and of filters by label */

#include "daemon/query/job_label.h"
#include "tests/unit/stored.h"
#include "tests/unit/test.h"

static struct stored s;
static struct stored_answer a;

static void end(void)
{
	if (*s.folder)
		stored_end(&s);
	memset(&s, 0, sizeof(s));
	memset(&a, 0, sizeof(a));
}

EACH_TEST(.end = end, .seconds = 60);

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

TEST(control_groups_show_units_containers_and_runners)
{
	static const struct {
		const char *path, *says;
	} known[] = {
		{NULL, ""},
		{"/", ""},
		{"/init.scope", ""},
		{"/system.slice/ssh.service", "unit=ssh.service"},
		{"/user.slice/user-1000.slice/user@1000.service/app.slice/make.service",
			"unit=make.service"},
		{"/system.slice/actions.runner.org-repo.box.service",
			"unit=actions.runner.org-repo.box.service, runner=github"},
		{"/system.slice/gitlab-runner.service",
			"unit=gitlab-runner.service, runner=gitlab"},
		{"/system.slice/jenkins.service", "unit=jenkins.service, runner=jenkins"},
		{"/system.slice/buildkite-agent@2.service",
			"unit=buildkite-agent@2.service, runner=buildkite"},
		{"/system.slice/docker-" ID ".scope", "container=0123456789ab"},
		{"/docker/" ID, "container=0123456789ab"},
		{"/machine.slice/libpod-" ID ".scope/container", "container=0123456789ab"},
		{"/kubepods.slice/kubepods-pod1.slice/cri-containerd-" ID ".scope",
			"container=0123456789ab"},
		{"/system.slice/slurmstepd.scope/job_123/step_0/user/task_0",
			"slurm_job=123, runner=slurm"},
		{"/slurm/uid_1000/job_77/step_batch", "slurm_job=77, runner=slurm"},
		{"/system.slice/job_123", ""},
		{"/slurm/job_12x", ""},
		{"/slurm/job_", ""},
		{"/a/0123456789abcdef", ""},
		{"/.service", ""},
	};
	struct label label[CGROUP_LABELS_MAX];
	char says[512];

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		ck_assert_str_eq(
			labels_say(label, cgroup_labels(known[i].path, label), says, sizeof(says)),
			known[i].says);
}

static struct task *labelled(int pid, const char *json)
{
	struct task *task = stored_task(&s, pid, pid, "prog");

	task->uid = 1000;
	if (json)
		stored_label(&s, task, json);
	stored_add(&s, &(struct stored_sample){.task = task});
	return task;
}

static void ask(const char *by, const char *const *label, size_t n)
{
	const struct query_filter filter = {.label = label, .n_labels = n};
	memset(&a, 0, sizeof(a));
	int r = stored_hotspots(s.db, by, &filter, &a);
	ck_assert_msg(r == 0, "%d: %s", r, a.error.text);
}

TEST(samples_are_filtered_and_summed_by_job)
{
	stored_begin_clock(&s);
	labelled(10, "{\"branch\":\"main\",\"job\":\"a\"}");
	struct task *process = labelled(11, "{\"branch\":\"main\",\"job\":\"b\"}");
	labelled(12, "{\"branch\":\"x\",\"job\":\"a\"}");
	labelled(13, NULL);
	struct task *thread = stored_task(&s, 11, 14, "worker");
	ck_assert_ptr_eq(thread->process, process);
	stored_add(&s, &(struct stored_sample){.task = thread});
	s.db = stored_seal(&s);

	ask("job", NULL, 0);
	ck_assert_uint_eq(a.n_rows, 4);
	ck_assert_int_ge(stored_row(&a, "branch=main, job=b"), 0);
	ask("job", (const char *[]){"branch=main"}, 1);
	ck_assert_uint_eq(a.n_rows, 2);
	ck_assert_uint_eq(a.samples, 3); /* the thread has the labels of its process */
	ask("process", (const char *[]){"branch=main", "job=a"}, 2);
	ck_assert_uint_eq(a.samples, 1);
	ask("process", (const char *[]){"branch=m*"}, 1);
	ck_assert_uint_eq(a.samples, 3);
	ask("process", (const char *[]){"branch=nobody"}, 1);
	ck_assert_uint_eq(a.samples, 0);
}
