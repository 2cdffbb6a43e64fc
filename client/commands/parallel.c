/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * mperfctl parallel: what the OpenMP tool reported. A command that it runs is given the tool, as
 * OpenMP provides for it: the OpenMP runtime loads it, so no other program of the command does, and
 * a program that has a tool of its own keeps that.
 */
#include <stdlib.h>
#include <string.h>

#include "client/commands/query.h"
#include "client/measure/program.h"
#include "client/options/command.h"
#include "client/show/say.h"

#define TOOL "libmperf-ompt.so"
/* Source: OpenMP API 5.2, 21.19 (OMP_TOOL_LIBRARIES). */
#define TOOLS "OMP_TOOL_LIBRARIES"

/* Have the next command's OpenMP runtime load the tool. 0, EXIT_FAILED. */
static int give_tool(void)
{
	char path[PROGRAM_PATH_BYTES];
	const char *others = getenv(TOOLS), *allowed = getenv("OMP_TOOL");
	if (allowed && strcmp(allowed, "disabled") == 0)
		say_note("OMP_TOOL=disabled keeps OpenMP runtimes from loading tools; unset it to "
			 "use mperf's");
	if (others && *others) {
		if (!strstr(others, TOOL))
			say_note(TOOLS " names another tool, which mperfctl does not replace; "
				       "unset it to use mperf's");
		return 0;
	}
	if (!program_find_library(TOOL, path)) {
		say_failure(TOOL " is not installed", "Install the package mperf again");
		return EXIT_FAILED;
	}
	if (setenv(TOOLS, path, 1) != 0) {
		say_failure("out of memory", "Free some memory, and try again");
		return EXIT_FAILED;
	}
	return 0;
}

static void say_empty(const struct options *o, bool kept)
{
	(void)kept;
	if (o->by && strcmp(o->by, "loop") == 0)
		say_note(
			"no loop that counts itself is known to be in a parallel region; build the "
			"program with mperf-cc");
	else if (o->target.command_line)
		say_note("no parallel region was reported: only programs that use LLVM's OpenMP "
			 "runtime (clang -fopenmp) load tools; if gcc built the program, replace "
			 "libgomp by that runtime: mperfctl parallel -- env LD_PRELOAD=libomp.so.5 "
			 "CMD. "
			 "Leave MPERF_FEED and MPERF_OUTPUT to mperfctl");
	else
		say_note("no parallel region was reported: start programs with " TOOLS
			 " naming " TOOL ", or through mperfctl parallel -- CMD");
}

int client_parallel(const struct options *o)
{
	/* The table is for the spread between threads; the other columns are in --json, --csv and
	 * --raw. */
	static const char *const hide[] = {"samples", "inside", "pid", NULL};
	Mperf__ParallelRequest parallel = MPERF__PARALLEL_REQUEST__INIT;
	parallel.by = (char *)(o->by ? o->by : "region");
	parallel.limit = o->limit;
	Mperf__Request request = MPERF__REQUEST__INIT;
	request.body_case = MPERF__REQUEST__BODY_PARALLEL;
	request.parallel = &parallel;
	const struct source_request from = source_request_of(o);
	const int exit_status = o->target.command_line ? give_tool() : 0;
	return exit_status != 0 ? exit_status : query_command(o, &from, &request, hide, say_empty);
}
