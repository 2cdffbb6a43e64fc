/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * /proc/stat begins with the harts, a line of ten numbers each; the lines that follow (a count for each
 * interrupt) are not read. User time contains the time of guests. Stolen time belongs to no task of this
 * machine: it counts only to the total, so that the load is what ran here.
 */
#include "daemon/session/hart_time.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/attribute/scan.h"
#include "proto/base/memory.h"

#define LINE_BYTES 256 /* of a hart; ten numbers of 20 digits are 220 */

enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, N_FIELDS };

static void parse_line(const char *p, struct hart_time *time, int n_harts)
{
	uint64_t hart, field[N_FIELDS] = {0}, total = 0;
	if (!scan_number(&p, 10, &hart) || hart >= (uint64_t)n_harts)
		return;
	for (int i = 0; i < N_FIELDS; i++) {
		while (*p == ' ')
			p++;
		if (!scan_number(&p, 10, &field[i]))
			return;
		total += field[i];
	}
	time[hart] = (struct hart_time){
		.known = true,
		.user = field[USER] + field[NICE],
		.kernel = field[SYSTEM] + field[IRQ] + field[SOFTIRQ],
		.total = total,
	};
}

void hart_time_parse(const char *text, struct hart_time *ret_time, int n_harts)
{
	memset(ret_time, 0, (size_t)(n_harts > 0 ? n_harts : 0) * sizeof(*ret_time));
	for (const char *line = text; line && strncmp(line, "cpu", 3) == 0;) {
		if (line[3] >= '0' && line[3] <= '9')
			parse_line(line + 3, ret_time, n_harts);
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
}

int hart_time_read(struct hart_time *ret_time, int n_harts)
{
	size_t size = ((size_t)n_harts + 2) * LINE_BYTES;
	_cleanup_(freep) char *text = malloc(size);
	if (!text)
		return -ENOMEM;
	ssize_t n = scan_text(AT_FDCWD, "/proc/stat", text, size);
	hart_time_parse(n > 0 ? text : "", ret_time, n_harts);
	return n < 0 ? (int)n : 0;
}

struct hart_time hart_time_since(const struct hart_time *now, const struct hart_time *before)
{
	if (!now->known || !before->known || now->total <= before->total ||
		now->user < before->user || now->kernel < before->kernel)
		return (struct hart_time){0};
	return (struct hart_time){
		.known = true,
		.user = now->user - before->user,
		.kernel = now->kernel - before->kernel,
		.total = now->total - before->total,
	};
}
