/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Regions: named parts of a program
 *
 * Code that runs between begin and end of a region counts for it, on that thread, including callees
 * called directly or by pointer. Regions nest, and a region inside another differs from the same
 * region outside (its path counts); a region inside itself counts once. Without the compiler's part
 * regions are still timed, and counters that the daemon grants are read too.
 *
 *      MPERF_REGION_BEGIN("solve");            a pair, in one function; the name is a literal
 *      ...
 *      MPERF_REGION_END("solve");
 *
 *      { MPERF_REGION("solve"); ... }          until the end of the scope, in C and in C++
 *      mperf::region here{"solve"};            the same, C++ only
 *
 * A region left by longjmp, or in C by an exception, ends at the next marker that detects this: a
 * begin in an outer frame, or the end of a region around it.
 *
 * The functions are weak: in a program linked without the runtime they do nothing. Weak names fetch
 * nothing out of an archive, so if you link by hand without the compiler's part, add
 * -Wl,-u,__mperf_region_begin before libmperf-runtime.a.
 */

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The begin of a region. Strings are NUL-terminated and outlive the call; the runtime copies at
 * most MPERF_REGION_TEXT_MAX bytes of each. */
struct mperf_region {
	const char *name;
	const char *source;
	uint32_t line;
	uint32_t reserved; /* 0 */
};
#define MPERF_REGION_TEXT_MAX 256u

#ifndef MPERF_REGION_RUNTIME_ /* the runtime defines them */
#define MPERF_REGION_LINKAGE_ __attribute__((weak, nothrow, visibility("default")))
#define MPERF_REGION_LINKED_(function) ((function) != 0)
#else
#define MPERF_REGION_LINKAGE_ __attribute__((nothrow, visibility("default")))
#define MPERF_REGION_LINKED_(function) 1
#endif

/* Enter a region; leave the innermost one of that name, with all regions still open inside it. An
 * end without a begin does nothing. Both set the thread's __mperf_bias of every object, so the
 * calling function must reload its own. Async-signal-safe, preserves errno. */
void __mperf_region_begin(const struct mperf_region *region) MPERF_REGION_LINKAGE_;
void __mperf_region_end(const char *name) MPERF_REGION_LINKAGE_;

#ifdef __cplusplus
}
#endif

#define MPERF_REGION_BEGIN(region_name)                                                            \
	do {                                                                                       \
		static const struct mperf_region mperf_region_here_ = {                            \
			"" region_name, __FILE__, __LINE__, 0};                                    \
		if (MPERF_REGION_LINKED_(__mperf_region_begin))                                    \
			__mperf_region_begin(&mperf_region_here_);                                 \
	} while (0)

#define MPERF_REGION_END(region_name)                                                              \
	do {                                                                                       \
		if (MPERF_REGION_LINKED_(__mperf_region_end))                                      \
			__mperf_region_end("" region_name);                                        \
	} while (0)

/* Always inlined, so that a marker is in the function that it marks. */
#define MPERF_REGION_INLINE_ __attribute__((always_inline)) inline

static MPERF_REGION_INLINE_ const char *mperf_region_enter_(const struct mperf_region *region)
{
	if (MPERF_REGION_LINKED_(__mperf_region_begin))
		__mperf_region_begin(region);
	return region->name;
}

static MPERF_REGION_INLINE_ void mperf_region_leave_(const char **name)
{
	if (MPERF_REGION_LINKED_(__mperf_region_end))
		__mperf_region_end(*name);
}

#define MPERF_REGION_PASTE_(a, b) a##b
#define MPERF_REGION_NAME_(a, b) MPERF_REGION_PASTE_(a, b)

#define MPERF_REGION(region_name)                                                                  \
	static const struct mperf_region MPERF_REGION_NAME_(mperf_region_, __LINE__) = {           \
		"" region_name, __FILE__, __LINE__, 0};                                            \
	__attribute__((cleanup(mperf_region_leave_), unused)) const char *MPERF_REGION_NAME_(      \
		mperf_region_name_, __LINE__) =                                                    \
		mperf_region_enter_(&MPERF_REGION_NAME_(mperf_region_, __LINE__))

#ifdef __cplusplus
namespace mperf
{
/* A region for as long as the object lives; the name is a literal. */
class region
{
      public:
	MPERF_REGION_INLINE_ explicit region(const char *name,
		const char *source = __builtin_FILE(), uint32_t line = __builtin_LINE())
	    : here_{name, source, line, 0}
	{
		if (MPERF_REGION_LINKED_(__mperf_region_begin))
			__mperf_region_begin(&here_);
	}
	MPERF_REGION_INLINE_ ~region()
	{
		if (MPERF_REGION_LINKED_(__mperf_region_end))
			__mperf_region_end(here_.name);
	}
	region(const region &) = delete;
	region &operator=(const region &) = delete;

      private:
	struct mperf_region here_;
};
} // namespace mperf
#endif
