// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A plugin that another LLVM loads crashes somewhere later, since the C++ in between has changed;
// the C interface has not, and says who is there. This runs before the plugin's own options come
// into being. A compiler that has no C interface in it at all is believed.

#include "llvm-c/Core.h"
#include "llvm/Config/llvm-config.h"

#include <cstdio>
#include <dlfcn.h>
#include <unistd.h>

namespace
{

// Of the compiler that loads us; 0: one before 16, which has no name for it. Source: LLVM 16,
// llvm-c/Core.h.
unsigned version_of_host()
{
	using get_version = void (*)(unsigned *, unsigned *, unsigned *);
	unsigned major = 0, minor = 0, patch = 0;
	if (auto get = reinterpret_cast<get_version>(dlsym(RTLD_DEFAULT, "LLVMGetVersion")))
		get(&major, &minor, &patch);
	else if (!dlsym(RTLD_DEFAULT, "LLVMContextCreate"))
		return LLVM_VERSION_MAJOR;
	return major;
}

__attribute__((constructor(101))) void version_check()
{
	const unsigned host = version_of_host();
	if (host == LLVM_VERSION_MAJOR)
		return;
	char name[24] = "one before 16";
	if (host)
		snprintf(name, sizeof(name), "LLVM %u", host);
	fprintf(stderr,
		"mperf-pass.so: this plugin is for LLVM %d, and the compiler that loads it is %s; "
		"compile with mperf-cc, which takes the plugin of its clang's version\n",
		LLVM_VERSION_MAJOR, name);
	_exit(1);
}

} // namespace
