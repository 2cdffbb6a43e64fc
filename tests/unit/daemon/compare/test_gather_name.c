/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Names of functions without what compilers append to those of copies */

#include "daemon/compare/gather_private.h"
#include "tests/unit/test.h"

static void is(const char *name, const char *wanted)
{
	ck_assert_msg(gather_name_length(name) == strlen(wanted), "%s: %zu, not '%s'", name,
		gather_name_length(name), wanted);
}

TEST(copies_are_named_after_their_function)
{
	is("work.constprop.0", "work");
	is("work.isra.0.cold", "work");
	is("work.part.0.lto_priv.0", "work");
	is("work.cold", "work");
	is("work.cold.1", "work");
	is("work.llvm.123456789", "work");
	is("work.localalias", "work");
}

TEST(names_that_only_begin_alike_stay_whole)
{
	is("work", "work");
	is("main.coldStart", "main.coldStart");
	is("main.coldStart.cold", "main.coldStart");
	is("pkg.localaliases", "pkg.localaliases");
	is(".cold", ".cold");
	is("", "");
}
