// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A plugin loaded by another LLVM crashes later, since the C++ interface differs; the C interface
// does not, and returns the version. This runs before the plugin's own options are constructed. A
// compiler without the C interface is accepted.

#include "llvm-c/Core.h"
#include "llvm/Config/llvm-config.h"

#include <cstdio>
#include <dlfcn.h>
#include <unistd.h>

namespace
{

// The version of the compiler that loads us; 0: before 16, which has no function for it. Source:
// LLVM 16, llvm-c/Core.h.
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
	char name[24] = "older than 16";
	if (host)
		snprintf(name, sizeof(name), "LLVM %u", host);
	fprintf(stderr,
		"mperf-pass.so: this plugin is for LLVM %d, but the compiler is %s; "
		"compile with mperf-cc, which selects the plugin for its clang\n",
		LLVM_VERSION_MAJOR, name);
	_exit(1);
}

} // namespace
