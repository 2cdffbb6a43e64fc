/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Ownership notation
 *
 * `_cleanup_(f)` runs f(&variable) when the variable leaves its scope; TAKE_PTR and TAKE_FD hand
 * the value over to another owner. DEFINE_CLEANUP makes the function for x_free(struct x *).
 */

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(f) __attribute__((cleanup(f)))

#define TAKE_PTR(p)                                                                                \
	({                                                                                         \
		__auto_type take_ = (p);                                                           \
		(p) = NULL;                                                                        \
		take_;                                                                             \
	})

#define TAKE_FD(fd)                                                                                \
	({                                                                                         \
		int take_ = (fd);                                                                  \
		(fd) = -1;                                                                         \
		take_;                                                                             \
	})

#define DEFINE_CLEANUP(type, free_function)                                                        \
	static inline void free_function##p(type *p)                                               \
	{                                                                                          \
		if (*p)                                                                            \
			free_function(*p);                                                         \
	}

static inline void freep(void *p)
{
	free(*(void **)p);
}

static inline void fclosep(FILE **f)
{
	if (*f)
		fclose(*f);
}

static inline void closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}
