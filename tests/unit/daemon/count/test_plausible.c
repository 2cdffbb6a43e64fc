/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Counts that cannot be, and those that can, however strange.
 */
#include "daemon/count/plausible.h"
#include "tests/unit/test.h"

#define S 1e9 /* ns */
#define CASE_EVENTS 2

TEST(counts_that_cannot_be_are_doubted_and_others_are_not)
{
	static const struct {
		struct plausible_count count[CASE_EVENTS];
		size_t n;
		const char *says; /* of the first; NULL: nothing */
	} cases[] = {
		/* a virtual machine's */
		{{{"instructions", 140737769190326, S, false}}, 1, "140,737,769,190,326 in"},
		{{{"LLC-load-misses", 159e6, S, false}, {"LLC-loads", 443581, S, false}}, 2,
			"LLC-load-misses for 443,581 LLC-loads"},
		/* one rep movsb copies megabytes */
		{{{"LLC-load-misses", 159e6, S, false}, {"instructions", 443581, S, false}}, 2,
			NULL},
		{{{"LLC-loads", 159e6, S, false}, {"instructions", 443581, S, false}}, 2, NULL},
		{{{"cache-misses", 159e6, S, false}, {"instructions", 443581, S, false}}, 2, NULL},
		{{{"L1-dcache-loads", 159e6, S, false}, {"instructions", 443581, S, false}}, 2,
			NULL},
		/* Intel's also counts lines that stores and prefetches fill */
		{{{"L1-dcache-load-misses", 300, S, false}, {"L1-dcache-loads", 100, S, false}}, 2,
			NULL},
		/* so much is possible in an hour on 64 harts */
		{{{"instructions", 140737769190326, 64 * 3600 * S, false}}, 1, NULL},
		{{{"instructions", 140737769190326, 0, false}}, 1, NULL}, /* of unknown time */
		{{{"cycles", 11e9, S, false}}, 1, "11,000,000,000 in"},
		{{{"cycles:u", 11e9, S, false}}, 1, "in"},
		{{{"cpu-cycles", 11e9, S, false}}, 1, "in"},
		{{{"cycles", 9e9, S, false}}, 1, NULL},
		{{{"instructions", 11e9, S, false}}, 1, NULL}, /* more than one a cycle */
		{{{"instructions", 17e9, S, false}, {"cycles", 1e9, S, false}}, 2,
			"instructions for"},
		{{{"cycles", 1e9, S, false}, {"instructions", 17e9, S, false}}, 2,
			"instructions for"},
		{{{"instructions", 15e9, S, false}, {"cycles", 1e9, S, false}}, 2, NULL},
		{{{"instructions:u", 17e9, S, false}, {"cycles:k", 1e9, S, false}}, 2, NULL},
		/* a low IPC alone is possible */
		{{{"instructions", 1, S, false}, {"cycles", 3e9, S, false}}, 2, NULL},
		{{{"cache-misses", 101, S, false}, {"cache-references", 100, S, false}}, 2,
			"101 cache-misses for 100 cache-references"},
		{{{"cache-misses", 100, S, false}, {"cache-references", 100, S, false}}, 2, NULL},
		/* scaled counts are estimates */
		{{{"branch-misses", 150, S, true}, {"branches", 100, S, false}}, 2, NULL},
		{{{"branch-misses", 201, S, false}, {"branches", 100, S, true}}, 2,
			"branch-misses"},
		{{{"branch-misses", 201, S, false}, {"branch-instructions", 100, S, false}}, 2,
			"branches"},
		/* what was not counted contradicts nothing */
		{{{"cache-misses", 101, S, false}, {"cache-references", -1, 0, false}}, 2, NULL},
		{{{"cache-misses", -1, 0, false}, {"cache-references", 5, S, false}}, 2, NULL},
		/* nor do unknown names */
		{{{"cyclesx", 11e9, S, false}, {"cycle", 1, S, false}}, 2, NULL},
		{{{"", 11e9, S, false}, {":u", 1, S, false}}, 2, NULL},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char text[PLAUSIBLE_TEXT_BYTES] = "left alone";
		bool doubted = plausible_doubt(cases[i].count, cases[i].n, 0, text);
		ck_assert_msg(doubted == (cases[i].says != NULL), "case %zu: %s", i, text);
		ck_assert_msg(strstr(text, doubted ? cases[i].says : "left alone"), "case %zu: %s",
			i, text);
	}
}

TEST(both_events_of_a_broken_rule_are_doubted)
{
	const struct plausible_count counts[] = {{"task-clock", S, S, false},
		{"branches", 10, S, false}, {"branch-misses", 20, S, false}};
	char text[PLAUSIBLE_TEXT_BYTES];
	ck_assert(!plausible_doubt(counts, 3, 0, text));
	ck_assert(plausible_doubt(counts, 3, 1, text));
	ck_assert(plausible_doubt(counts, 3, 2, text));
}
