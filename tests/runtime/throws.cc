// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Regions that are left by exceptions: by a scope guard, which ends them, and by a pair of markers,
// of which the second is never met.
#include <stdexcept>

#include "runtime/mperf.h"

extern "C" void counted_a(unsigned n);

__attribute__((noinline)) static void guarded(int depth)
{
	mperf::region here{"guarded"};
	counted_a(1);
	if (depth == 0)
		throw std::runtime_error("out");
	guarded(depth - 1);
}

__attribute__((noinline)) static void paired()
{
	MPERF_REGION_BEGIN("paired");
	counted_a(10);
	throw std::runtime_error("out");
}

int main()
{
	mperf::region all{"all"};
	try {
		guarded(3);
	} catch (const std::exception &) {
		counted_a(100);
	}
	try {
		paired();
	} catch (const std::exception &) {
	}
	MPERF_REGION("next");
	counted_a(1000);
	return 0;
}
