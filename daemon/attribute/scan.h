/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Scan: the texts of /proc as values
 *
 * Pure parsers of texts that the kernel writes, in which a process chooses its name, paths and
 * arguments; and the few calls that read such a text. Source of every format: man proc(5);
 * Documentation/filesystems/proc.rst of Linux 6.12.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* of maps: PATH_MAX and its escapes; the rest of a longer line is skipped */
#define SCAN_LINE_BYTES_MAX 8192
/* lines of maps read per process; vm.max_map_count is 65530 by default */
#define SCAN_MAPS_MAX 262144
#define SCAN_STAT_BYTES_MAX 4096 /* of stat, status and cgroup; they hold a few hundred bytes */

enum { SCAN_MALFORMED = 1 };

/* An unsigned number, without sign or blanks before it, up to the first byte that is no digit of
 * base 8, 10 or 16; *p moves past it. False if there is none or it exceeds 64 bits. */
bool scan_number(const char **p, unsigned int base, uint64_t *ret);

struct scan_stat {
	pid_t pid, parent;
	char comm[16]; /* cut to 15 bytes as the kernel does */
	bool kernel_thread;
	uint64_t start_ticks; /* since boot, CLOCK_BOOTTIME, in units of sysconf(_SC_CLK_TCK) */
};
/* /proc/PID/stat; comm may hold blanks and parentheses. 0, SCAN_MALFORMED. */
int scan_stat_parse(const char *text, struct scan_stat *ret_stat);

struct scan_map {
	uint64_t start, end, file_offset, inode;
	uint32_t major, minor;
	bool executable;
	const char *path; /* inside the line; "" for anonymous memory */
};
/* Parse one line of /proc/PID/maps, with or without its line feed; changes it in place. 0,
 * SCAN_MALFORMED. */
int scan_map_parse(char *line, struct scan_map *ret_map);

/* The user and group ids of /proc/PID/status, if all four of each are the same; else root's, as for
 * setuid and setgid programs, which the kernel hides from others too. And the real user in any case.
 * 0, SCAN_MALFORMED. */
int scan_uid_parse(const char *text, uid_t *ret_uid, gid_t *ret_gid, uid_t *ret_real);

/* The hierarchy in which a cgroup path was found, best first. */
enum scan_hierarchy { SCAN_UNIFIED, SCAN_PERF_EVENT, SCAN_SYSTEMD, N_SCAN_HIERARCHIES };
/* /proc/PID/cgroup: the path in version 2, else in the hierarchy of perf_event or systemd. These
 * are preferred if version 2 is mounted beside version 1 and keeps all processes in its root. path
 * must have room for SCAN_STAT_BYTES_MAX. 0, SCAN_MALFORMED (none of the three). */
int scan_cgroup_parse(const char *text, enum scan_hierarchy *ret_hierarchy, char *ret_path);

/* The earliest start time of a task in /proc, on CLOCK_MONOTONIC: ticks are truncated, not rounded.
 * suspended_ns: CLOCK_BOOTTIME less CLOCK_MONOTONIC. */
uint64_t scan_start_ns(uint64_t start_ticks, uint64_t tick_ns, uint64_t suspended_ns);

/* Read a text, cut to size - 1 bytes, NUL-terminated. Returns its bytes or -errno. */
ssize_t scan_text(int folder_fd, const char *name, char *buffer, size_t size);
