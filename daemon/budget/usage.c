/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * CPU time comes from the processes' own clocks, which the kernel keeps in nanoseconds; /proc has
 * it in hundredths of a second, in which a cheap daemon would often use none at all. Children that
 * ended are known as a sum (getrusage), so that nothing is forgotten when a query is over.
 */
#include "daemon/budget/usage.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "daemon/attribute/scan.h"

static bool cpu_ns(pid_t pid, uint64_t *ret_ns)
{
	clockid_t clock;
	struct timespec t;
	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) < 0)
		return false;
	*ret_ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	return true;
}

static uint64_t ended_ns(void)
{
	struct rusage u = {0};
	getrusage(RUSAGE_CHILDREN, &u);
	uint64_t us = (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000u +
		      (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
	return us * 1000;
}

uint64_t usage_kilobytes(const char *text, const char *key)
{
	size_t n = strlen(key);
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, n) != 0 || line[n] != ':')
			continue;
		const char *p = line + n + 1;
		uint64_t kilobytes;
		p += strspn(p, " \t");
		bool good = scan_number(&p, 10, &kilobytes) && kilobytes <= UINT64_MAX / 1024;
		return good ? kilobytes * 1024 : 0;
	}
	return 0;
}

static void read_memory(struct usage_process *p)
{
	char path[64], text[SCAN_STAT_BYTES_MAX];
	snprintf(path, sizeof(path), "/proc/%d/status", (int)p->pid);
	if (scan_text(AT_FDCWD, path, text, sizeof(text)) <= 0)
		return;
	p->rss_bytes = usage_kilobytes(text, "VmRSS");
	p->peak_bytes = usage_kilobytes(text, "VmHWM");
}

static void add(struct usage_process *process, size_t *n, pid_t pid, const char *what)
{
	struct usage_process p = {.pid = pid, .what = what, .minute_share = -1};
	for (size_t i = 0; i < *n; i++)
		if (process[i].pid == pid)
			return;
	if (pid <= 0 || *n >= USAGE_PROCESSES_MAX - 1 || !cpu_ns(pid, &p.cpu_ns))
		return;
	process[(*n)++] = p;
}

/* Children by the kernel's own list, where it was built with one. Source: man proc(5),
 * /proc/PID/task/TID/children (CONFIG_PROC_CHILDREN). */
static void add_children(struct usage_process *process, size_t *n)
{
	char path[64], text[SCAN_STAT_BYTES_MAX];
	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	if (scan_text(AT_FDCWD, path, text, sizeof(text)) <= 0)
		return;
	const char *p = text;
	for (uint64_t pid; scan_number(&p, 10, &pid) && pid <= INT32_MAX; p += *p == ' ')
		add(process, n, (pid_t)pid, "query");
}

static size_t find(const struct namer *namer, pid_t looks, struct usage_process *process)
{
	size_t n = 0;
	add(process, &n, getpid(), "daemon");
	if (namer) {
		struct namer_status s;
		namer_status(namer, &s);
		add(process, &n, s.opener.pid, "opener");
		add(process, &n, s.parser.pid, "parser");
	}
	add(process, &n, looks, "looks");
	add_children(process, &n);
	process[n++] =
		(struct usage_process){.what = "ended", .cpu_ns = ended_ns(), .minute_share = -1};
	return n;
}

void usage_cpu(const struct namer *namer, struct usage_cpu *ret_cpu)
{
	struct usage_process process[USAGE_PROCESSES_MAX];
	struct usage_cpu cpu = {0};
	size_t n = find(namer, 0, process);
	for (size_t i = 0; i < n; i++) {
		bool other = strcmp(process[i].what, "query") == 0 || process[i].pid == 0;
		*(other ? &cpu.others_ns : &cpu.own_ns) += process[i].cpu_ns;
		cpu.namer_ns += !other && process[i].pid != getpid() ? process[i].cpu_ns : 0;
	}
	*ret_cpu = cpu;
}

void usage_tick(struct usage *u, const struct namer *namer, pid_t looks, uint64_t now_ns)
{
	struct usage_process process[USAGE_PROCESSES_MAX];
	struct usage_moment *last = &u->past[USAGE_TICKS - 1];
	memmove(u->past, u->past + 1, (USAGE_TICKS - 1) * sizeof(*u->past));
	last->at_ns = now_ns;
	last->n = find(namer, looks, process);
	for (size_t i = 0; i < last->n; i++) {
		last->process[i].pid = process[i].pid;
		last->process[i].cpu_ns = process[i].cpu_ns;
	}
}

/* CPU time of the process a minute ago; 0 for a process that has started since. */
static uint64_t cpu_before(const struct usage_moment *m, pid_t pid)
{
	for (size_t i = 0; i < m->n; i++)
		if (m->process[i].pid == pid)
			return m->process[i].cpu_ns;
	return 0;
}

static void compare(
	const struct usage_moment *m, uint64_t now_ns, struct usage_process *process, size_t n)
{
	uint64_t gone_ns = 0;
	/* the time that a child used before that minute is in the sum of the children that ended in
	 * the minute */
	for (size_t i = 0; i < m->n; i++) {
		size_t k = 0;
		while (k < n && process[k].pid != m->process[i].pid)
			k++;
		gone_ns += k == n ? m->process[i].cpu_ns : 0;
	}
	for (size_t i = 0; i < n; i++) {
		uint64_t before = cpu_before(m, process[i].pid);
		before += process[i].pid == 0 ? gone_ns : 0;
		uint64_t used = process[i].cpu_ns > before ? process[i].cpu_ns - before : 0;
		process[i].minute_share = (double)used / (double)(now_ns - m->at_ns);
	}
}

size_t usage_read(const struct usage *u, const struct namer *namer, pid_t looks, uint64_t now_ns,
	struct usage_process ret_process[USAGE_PROCESSES_MAX])
{
	size_t n = find(namer, looks, ret_process);
	for (size_t i = 0; i < n; i++)
		if (ret_process[i].pid)
			read_memory(&ret_process[i]);
	for (size_t i = 0; u && i < USAGE_TICKS; i++) {
		const struct usage_moment *m = &u->past[i];
		if (m->at_ns == 0 || m->at_ns >= now_ns)
			continue;
		compare(m, now_ns, ret_process, n);
		break;
	}
	return n;
}
