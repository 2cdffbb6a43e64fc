/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Rights are found by using them: they depend on capabilities, the paranoid level, Debian's patch
 * to it, security modules and containers, so only opening an event shows the result. Two rights are
 * tested separately: system-wide without the kernel, and the kernel of one task. cpu-clock is used,
 * since every kernel has it.
 */
#include "daemon/kernel/machine.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CPU_FOLDER "/sys/devices/system/cpu/"
#define LIST_BYTES_MAX 8192    /* HARTS_MAX separate ids, "1022," */
#define MEMINFO_BYTES_MAX 8192 /* some 60 lines of 28 bytes */
#define PARANOID_UNKNOWN 4     /* above every known level: assume no rights */

/* Percentage of the highest rate whose samples fit into a tick; and of the tick rate, if a tick has
 * room for one sample at most. */
#define SAFE_PERCENT 80
#define SLOW_PERCENT 40

#if defined(__x86_64__)
#define ARCH_BUILT "x86_64"
#elif defined(__aarch64__)
#define ARCH_BUILT "aarch64"
#elif defined(__riscv) && __riscv_xlen == 64
#define ARCH_BUILT "riscv64"
#else
#define ARCH_BUILT "unknown"
#endif

bool hart_set_has(const struct hart_set *s, int hart)
{
	return hart >= 0 && hart < HARTS_MAX && (s->bits[hart / 64] >> (hart % 64) & 1);
}

void hart_set_add(struct hart_set *s, int hart)
{
	if (hart >= 0 && hart < HARTS_MAX)
		s->bits[hart / 64] |= UINT64_C(1) << (hart % 64);
}

void hart_set_remove(struct hart_set *s, int hart)
{
	if (hart >= 0 && hart < HARTS_MAX)
		s->bits[hart / 64] &= ~(UINT64_C(1) << (hart % 64));
}

int hart_set_count(const struct hart_set *s)
{
	int n = 0;
	for (int i = 0; i < HARTS_MAX / 64; i++)
		n += __builtin_popcountll(s->bits[i]);
	return n;
}

/* A decimal id at *at; 0, -EINVAL or -ERANGE. */
static int id_take(const char **at, int *ret_id)
{
	if (!isdigit((unsigned char)**at))
		return -EINVAL;
	int id = 0;
	for (; isdigit((unsigned char)**at); (*at)++)
		if (id < HARTS_MAX)
			id = id * 10 + (**at - '0');
	if (id >= HARTS_MAX)
		return -ERANGE;
	*ret_id = id;
	return 0;
}

int hart_set_parse(const char *text, struct hart_set *ret_set)
{
	struct hart_set set = {0};
	const char *at = text;
	/* An empty list is valid: "offline" on most machines. */
	while (*at && *at != '\n') {
		int low, high, r = id_take(&at, &low);
		if (r < 0)
			return r;
		high = low;
		if (*at == '-') {
			at++;
			r = id_take(&at, &high);
			if (r < 0)
				return r;
		}
		if (high < low)
			return -EINVAL;
		for (int hart = low; hart <= high; hart++)
			hart_set_add(&set, hart);
		if (*at == ',' && isdigit((unsigned char)at[1]))
			at++;
		else if (*at && *at != '\n')
			return -EINVAL;
	}
	if (*at == '\n' && at[1])
		return -EINVAL;
	*ret_set = set;
	return 0;
}

static int hart_set_read(const struct kernel *k, const char *path, struct hart_set *ret_set)
{
	char text[LIST_BYTES_MAX];
	ssize_t n = k->read_text(k->userdata, path, text, sizeof(text));
	return n < 0 ? (int)n : hart_set_parse(text, ret_set);
}

static int hart_set_last(const struct hart_set *s)
{
	for (int hart = HARTS_MAX - 1; hart >= 0; hart--)
		if (hart_set_has(s, hart))
			return hart;
	return -1;
}

/* A number in a file below /proc/sys, or fallback. */
static long sysctl_read(const struct kernel *k, const char *name, long fallback)
{
	char path[128], text[32], *end;
	snprintf(path, sizeof(path), "/proc/sys/kernel/%s", name);
	if (k->read_text(k->userdata, path, text, sizeof(text)) < 0)
		return fallback;
	errno = 0;
	long value = strtol(text, &end, 10);
	if (errno || end == text || (*end && *end != '\n'))
		return fallback;
	return value;
}

static uint32_t sysctl_read_unsigned(const struct kernel *k, const char *name)
{
	long value = sysctl_read(k, name, 0);
	return value < 0 || value > UINT32_MAX ? 0 : (uint32_t)value;
}

/* The first line is "MemTotal:  8000000 kB". Source: man proc_meminfo. */
static uint32_t memory_read(const struct kernel *k)
{
	static const char key[] = "MemTotal:";
	char text[MEMINFO_BYTES_MAX], *end;
	if (k->read_text(k->userdata, "/proc/meminfo", text, sizeof(text)) < 0 ||
		strncmp(text, key, sizeof(key) - 1) != 0)
		return 0;
	errno = 0;
	long kb = strtol(text + sizeof(key) - 1, &end, 10);
	bool good = errno == 0 && strncmp(end, " kB\n", 4) == 0 && kb > 0 && kb <= UINT32_MAX;
	return good ? (uint32_t)kb : 0;
}

/* Read a short line of a file; if that fails, the line is fallback. */
static void line_read(
	const struct kernel *k, const char *path, const char *fallback, char line[static 65])
{
	char text[65];
	if (k->read_text(k->userdata, path, text, sizeof(text)) <= 0)
		snprintf(text, sizeof(text), "%s", fallback);
	text[strcspn(text, "\n")] = '\0';
	memcpy(line, text, sizeof(text));
}

/* Is the release at least that version, as "6.16.3-amd64" is since 6.16? A release that does not parse is old. */
static bool release_is_since(const char *release, int major, int minor)
{
	int have_major = 0, have_minor = 0;
	if (sscanf(release, "%d.%d", &have_major, &have_minor) != 2)
		return false;
	return have_major > major || (have_major == major && have_minor >= minor);
}

static int try_open(const struct kernel *k, pid_t pid, int hart, bool exclude_kernel)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.disabled = 1,
		.exclude_kernel = exclude_kernel,
		.exclude_hv = exclude_kernel,
	};
	int fd = k->event_open(k->userdata, &attr, pid, hart, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return fd;
	k->event_close(k->userdata, fd);
	return 0;
}

static bool try_system(const struct kernel *k, const struct machine *m)
{
	for (int hart = 0; hart < m->n_harts; hart++) {
		if (!hart_set_has(&m->online, hart))
			continue;
		int r = try_open(k, -1, hart, true);
		/* A hart may have gone offline since its list was read: ask the next. */
		if (r != -ENODEV)
			return r == 0;
	}
	return false;
}

/* Source: perf_mmap in kernel/events/core.c of Linux 6.12: mlock_kb for each online hart, then RLIMIT_MEMLOCK. */
static uint64_t locked_share_kb(const struct kernel *k, const struct machine *m)
{
	const uint64_t all = k->locked_bytes ? k->locked_bytes(k->userdata) : UINT64_MAX;
	if (all == UINT64_MAX || m->paranoid < 0)
		return 0;
	return m->mlock_kb + (all >> 10) / (uint64_t)hart_set_count(&m->online);
}

int machine_read(const struct kernel *k, struct machine *ret_machine)
{
	struct machine m = {0};
	struct hart_set possible = {0};
	if (hart_set_read(k, CPU_FOLDER "online", &m.online) < 0 || !hart_set_count(&m.online))
		return -EIO;

	/* Some firmware announces more harts than HARTS_MAX; those are never online. */
	int r = hart_set_read(k, CPU_FOLDER "possible", &possible);
	if (r == -ERANGE)
		m.n_harts = HARTS_MAX;
	else if (r == 0)
		m.n_harts = hart_set_last(&possible) + 1;
	if (m.n_harts <= hart_set_last(&m.online))
		m.n_harts = hart_set_last(&m.online) + 1;

	long paranoid = sysctl_read(k, "perf_event_paranoid", PARANOID_UNKNOWN);
	m.paranoid = paranoid < -1                 ? -1
		     : paranoid > PARANOID_UNKNOWN ? PARANOID_UNKNOWN
						   : (int)paranoid;
	m.max_sample_rate = sysctl_read_unsigned(k, "perf_event_max_sample_rate");
	m.mlock_kb = sysctl_read_unsigned(k, "perf_event_mlock_kb");
	m.locked_kb = locked_share_kb(k, &m);
	m.memory_kb = memory_read(k);
	m.max_stack = sysctl_read_unsigned(k, "perf_event_max_stack");
	line_read(k, "/proc/sys/kernel/osrelease", "unknown", m.release);
	/* Linux has /proc/sys/kernel/arch since 6.1; before, use the build's architecture. */
	line_read(k, "/proc/sys/kernel/arch", ARCH_BUILT, m.arch);
	m.tick_hz = k->tick_hz ? k->tick_hz(k->userdata) : 0;
	m.throttles_groups = release_is_since(m.release, 6, 16);
	m.may_see_all = try_system(k, &m);
	m.may_see_kernel = try_open(k, 0, -1, false) == 0;

	*ret_machine = m;
	return 0;
}

uint32_t machine_rate_max(const struct machine *m)
{
	const uint64_t limit = m->max_sample_rate, hz = m->tick_hz;
	if (limit == 0)
		return UINT32_MAX;
	if (hz == 0)
		return (uint32_t)limit;
	uint64_t in_a_tick = (limit + hz - 1) / hz;
	uint64_t rate =
		in_a_tick > 1 ? (in_a_tick - 1) * hz * SAFE_PERCENT / 100 : hz * SLOW_PERCENT / 100;
	/* one less, so as not to be a multiple of the tick rate, nor a simple part of it */
	rate = rate > 1 ? rate - 1 : 1;
	return (uint32_t)(rate < limit ? rate : limit);
}

int machine_refresh(const struct kernel *k, struct machine *m)
{
	struct hart_set online;
	int r = hart_set_read(k, CPU_FOLDER "online", &online);
	if (r < 0)
		return r;
	m->online = online;
	m->max_sample_rate = sysctl_read_unsigned(k, "perf_event_max_sample_rate");
	return 0;
}
