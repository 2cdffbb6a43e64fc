/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Versions: the code at an address of generated code, by time
 *
 * A compiler puts new code where other code was. Each such change begins a new version of its
 * addresses, and a frame is (file, address, version). Version 0 is the code that was there when the file
 * was first read, or first described the address; if the file has times, when it was first sampled.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct file;
struct file_table;

/* Ranges of one file with versions of their own, and known changes that are not valid yet. Beyond it, or over the
 * user's quota, all of the file becomes one new version at once: samples since the last look may get its names, and
 * code that did not change has two frames. */
#define VERSIONS_MAX 1024u

/* A change: from its time on [start, end) is another version, which is greater than all earlier ones. */
struct version_change {
	uint64_t start, end;
	uint64_t from_ns; /* CLOCK_MONOTONIC */
	uint32_t version;
};

/* Enter changes, in order. Their memory is charged to the file's user. */
void versions_change(
	struct file_table *t, struct file *file, const struct version_change *c, size_t n);
/* Set the version of all addresses to this one. */
void versions_change_all(struct file *file, uint32_t version);

/* The version of an address at a time, which is not before that of the last call: changes up to that time become
 * valid. 0: no time, the present version. */
uint32_t version_at(struct file_table *t, struct file *file, uint64_t addr, uint64_t time_ns);

struct versions *versions_free(struct versions *v);
