/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * mperfctl gate: is the candidate slower than the baseline? The exit status says so.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/commands/compare.h"
#include "client/options/command.h"
#include "client/show/outfile.h"
#include "client/show/print.h"
#include "client/show/say.h"
#include "proto/base/memory.h"

/* Write the JUnit file for CI systems. 0, or EXIT_FAILED after an error message. */
static int write_junit(const struct options *o, const struct replies *replies)
{
	const struct verdict_asked asked = compare_asked(o, true);
	struct outfile out;
	_cleanup_(freep) char *xml = NULL;
	size_t bytes = 0;
	FILE *f = open_memstream(&xml, &bytes);

	if (!f)
		return EXIT_FAILED;
	verdict_junit(replies, &asked, f);
	int r = fclose(f) == 0 ? 0 : -ENOMEM;
	if (r == 0)
		r = outfile_open(&out, o->junit, outfile_over_answer(o->force));
	if (r == 0) {
		r = outfile_write(&out, xml, bytes);
		if (r == 0)
			r = outfile_commit(&out);
		outfile_clear(&out);
	}
	if (r != 0)
		outfile_say_failed(o->junit, r, "name another file with --junit");
	return r == 0 ? 0 : EXIT_FAILED;
}

int client_gate(const struct options *o)
{
	struct replies replies = {0};
	bool answered;
	int exit_status = compare_ask(o, true, &replies, &answered);

	if (answered && compare_show(o, true, &replies) != 0)
		exit_status = EXIT_FAILED;
	if (answered && o->junit && write_junit(o, &replies) != 0)
		exit_status = EXIT_FAILED;
	replies_clear(&replies);
	return exit_status;
}
