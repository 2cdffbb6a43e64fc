/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Scan: parse the texts of /proc
 *
 * The kernel's layout can be trusted, the names inside cannot: a program may call itself "x) R 1 ("
 * or map a file whose name looks like a line of maps. So nothing is searched for that a name could
 * contain: fields are taken in order up to the free text, which is always last or, in stat, ends
 * with the last parenthesis.
 */

#include "daemon/attribute/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/digit.h"
#include "proto/base/memory.h"

/* Source: include/linux/sched.h, PF_KTHREAD. */
#define SCAN_FLAG_KERNEL_THREAD 0x00200000u

bool scan_number(const char **p, unsigned int base, uint64_t *ret)
{
	const char *c = *p;
	uint64_t value = 0;

	for (int digit; (digit = digit_value(*c)) >= 0 && (unsigned int)digit < base; c++)
		if (__builtin_mul_overflow(value, base, &value) ||
			__builtin_add_overflow(value, (uint64_t)digit, &value))
			return false;
	if (c == *p)
		return false;

	*p = c;
	*ret = value;
	return true;
}

/* A number and the one byte that must follow it. */
static bool scan_field(const char **p, unsigned int base, char end, uint64_t *ret)
{
	const char *c = *p;
	uint64_t value;

	if (!scan_number(&c, base, &value) || *c != end)
		return false;
	*p = c + 1;
	*ret = value;
	return true;
}

/* Skip n fields of any text, each followed by one blank. */
static bool skip_fields(const char **p, int n)
{
	for (; n > 0; n--) {
		const char *blank = strchr(*p, ' ');
		if (!blank)
			return false;
		*p = blank + 1;
	}
	return true;
}

int scan_stat_parse(const char *text, struct scan_stat *ret_stat)
{
	struct scan_stat stat = {0};
	uint64_t pid, parent, flags;
	const char *p = text;

	if (!scan_field(&p, 10, ' ', &pid) || *p++ != '(')
		return SCAN_MALFORMED;
	const char *end = strrchr(p, ')');
	if (!end || end[1] != ' ')
		return SCAN_MALFORMED;

	size_t n_comm = (size_t)(end - p);
	memcpy(stat.comm, p, n_comm < sizeof(stat.comm) ? n_comm : sizeof(stat.comm) - 1);

	/* 3 state, 4 ppid, 5-8, 9 flags, 10-21, 22 starttime */
	p = end + 2;
	if (!skip_fields(&p, 1) || !scan_field(&p, 10, ' ', &parent) || !skip_fields(&p, 4) ||
		!scan_field(&p, 10, ' ', &flags) || !skip_fields(&p, 12) ||
		!scan_number(&p, 10, &stat.start_ticks))
		return SCAN_MALFORMED;
	if (pid == 0 || pid > INT32_MAX || parent > INT32_MAX)
		return SCAN_MALFORMED;

	stat.pid = (pid_t)pid;
	stat.parent = (pid_t)parent;
	stat.kernel_thread = flags & SCAN_FLAG_KERNEL_THREAD;
	*ret_stat = stat;
	return 0;
}

/* The kernel writes a line feed in a path as \012 and escapes nothing else.
 * Source: fs/proc/task_mmu.c, show_map_vma: seq_path(…, "\n"). */
static void unescape_line_feeds(char *path)
{
	char *to = path;

	for (const char *from = path; *from; to++) {
		if (!strncmp(from, "\\012", 4)) {
			*to = '\n';
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

int scan_map_parse(char *line, struct scan_map *ret_map)
{
	struct scan_map m = {0};
	uint64_t major, minor;
	const char *p = line;

	line[strcspn(line, "\n")] = '\0';
	if (!scan_field(&p, 16, '-', &m.start) || !scan_field(&p, 16, ' ', &m.end))
		return SCAN_MALFORMED;
	if (m.start >= m.end || strnlen(p, 5) < 5 || p[4] != ' ')
		return SCAN_MALFORMED;

	m.executable = p[2] == 'x';
	p += 5;
	if (!scan_field(&p, 16, ' ', &m.file_offset) || !scan_field(&p, 16, ':', &major) ||
		!scan_field(&p, 16, ' ', &minor) || !scan_number(&p, 10, &m.inode))
		return SCAN_MALFORMED;
	if (major > UINT32_MAX || minor > UINT32_MAX || (*p && *p != ' '))
		return SCAN_MALFORMED;

	m.major = (uint32_t)major;
	m.minor = (uint32_t)minor;
	char *path = line + (p - line);
	path += strspn(path, " ");
	unescape_line_feeds(path);
	m.path = path;
	*ret_map = m;
	return 0;
}

/* Not an id: ids have 32 bits. */
#define SCAN_IDS_DIFFER UINT64_MAX

/* The id that a line of /proc/PID/status has four times (real, effective, saved, file system), or
 * SCAN_IDS_DIFFER; and the real one. False if there is no such line. */
static bool scan_ids(const char *text, const char *label, uint64_t *ret_id, uid_t *ret_real)
{
	uint64_t id[4];
	/* The name is in the first line; the kernel escapes its line feeds. */
	const char *p = strstr(text, label);

	if (!p)
		return false;
	p += strlen(label);
	for (int i = 0; i < 4; i++)
		if (!scan_field(&p, 10, i < 3 ? '\t' : '\n', &id[i]) || id[i] > UINT32_MAX)
			return false;
	bool one = id[0] == id[1] && id[0] == id[2] && id[0] == id[3];
	*ret_id = one ? id[0] : SCAN_IDS_DIFFER;
	*ret_real = (uid_t)id[0];
	return true;
}

int scan_uid_parse(const char *text, uid_t *ret_uid, gid_t *ret_gid, uid_t *ret_real)
{
	uint64_t uid, gid;
	uid_t real, real_gid;

	if (!scan_ids(text, "\nUid:\t", &uid, &real) ||
		!scan_ids(text, "\nGid:\t", &gid, &real_gid))
		return SCAN_MALFORMED;

	bool differ = uid == SCAN_IDS_DIFFER || gid == SCAN_IDS_DIFFER;
	*ret_uid = differ ? 0 : (uid_t)uid;
	*ret_gid = differ ? 0 : (gid_t)gid;
	*ret_real = real;
	return 0;
}

/* The hierarchy that a line "id:controllers:" belongs to; N_SCAN_HIERARCHIES: none of the three. */
static enum scan_hierarchy cgroup_hierarchy(const char *controllers, size_t n)
{
	static const char perf_event[] = "perf_event", systemd[] = "name=systemd";

	if (n == 0)
		return SCAN_UNIFIED;
	if (n == sizeof(systemd) - 1 && !memcmp(controllers, systemd, n))
		return SCAN_SYSTEMD;

	while (n) {
		const char *comma = memchr(controllers, ',', n);
		size_t n_word = comma ? (size_t)(comma - controllers) : n;

		if (n_word == sizeof(perf_event) - 1 && !memcmp(controllers, perf_event, n_word))
			return SCAN_PERF_EVENT;
		n_word += comma ? 1 : 0;
		controllers += n_word;
		n -= n_word;
	}
	return N_SCAN_HIERARCHIES;
}

struct path_view {
	const char *path;
	size_t n;
};

/* "id:controllers:/path" of one line of n bytes. */
static void cgroup_line(const char *line, size_t n, struct path_view found[N_SCAN_HIERARCHIES])
{
	const char *end = line + n, *controllers = memchr(line, ':', n);
	if (!controllers)
		return;
	controllers++;
	const char *path = memchr(controllers, ':', (size_t)(end - controllers));
	if (!path || ++path == end || *path != '/')
		return;

	enum scan_hierarchy h = cgroup_hierarchy(controllers, (size_t)(path - 1 - controllers));
	if (h != N_SCAN_HIERARCHIES && !found[h].path)
		found[h] = (struct path_view){path, (size_t)(end - path)};
}

int scan_cgroup_parse(const char *text, enum scan_hierarchy *ret_hierarchy, char *ret_path)
{
	struct path_view found[N_SCAN_HIERARCHIES] = {0};

	for (const char *line = text; *line;) {
		size_t n = strcspn(line, "\n");

		cgroup_line(line, n, found);
		line += n + (line[n] == '\n');
	}

	int best = -1;
	for (int h = 0; h < N_SCAN_HIERARCHIES; h++)
		if (found[h].path && (best < 0 || (found[best].n == 1 && found[h].n > 1)))
			best = h;
	if (best < 0 || found[best].n >= SCAN_STAT_BYTES_MAX)
		return SCAN_MALFORMED;

	memcpy(ret_path, found[best].path, found[best].n);
	ret_path[found[best].n] = '\0';
	*ret_hierarchy = (enum scan_hierarchy)best;
	return 0;
}

uint64_t scan_start_ns(uint64_t start_ticks, uint64_t tick_ns, uint64_t suspended_ns)
{
	uint64_t boot_ns;

	if (__builtin_mul_overflow(start_ticks, tick_ns, &boot_ns))
		return 0;
	return boot_ns > suspended_ns ? boot_ns - suspended_ns : 0;
}

ssize_t scan_text(int folder_fd, const char *name, char *buffer, size_t size)
{
	_cleanup_(closep) int fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	size_t n = 0;

	if (fd < 0)
		return -errno;
	while (n < size - 1) {
		ssize_t r = read(fd, buffer + n, size - 1 - n);
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		if (r == 0)
			break;
		n += (size_t)r;
	}
	buffer[n] = '\0';
	return (ssize_t)n;
}
