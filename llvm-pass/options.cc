// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Options in the environment: MPERF_PASS="mode=block nests=0". A linker parses its command line
// before it loads the pass, and builds forward an environment more easily than flags.

#include "options.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

using namespace llvm;

namespace mperf
{

namespace
{

Mode mode_of(StringRef name, Mode otherwise)
{
	if (name == "tree")
		return Mode::TREE;
	if (name == "block")
		return Mode::BLOCK;
	if (name == "clone")
		return Mode::CLONE;
	return name == "sets" ? Mode::SETS : otherwise;
}

} // namespace

Options options_from_environment(Options options, const char *words)
{
	const std::pair<StringRef, bool *> switches[] = {{"all-nests", &options.all_nests},
		{"hoist", &options.hoist}, {"promote", &options.promote}, {"nests", &options.nests},
		{"segment", &options.segment}, {"functions", &options.functions},
		{"blocks", &options.blocks}, {"escapes", &options.escapes},
		{"dynamic-tls", &options.dynamic_tls}};
	SmallVector<StringRef, 8> list;
	StringRef(words ? words : "").split(list, ' ', -1, false);
	for (StringRef word : list) {
		const auto [name, value] = word.split('=');
		if (name == "mode")
			options.mode = mode_of(value, options.mode);
		for (const auto &[known, to] : switches) {
			if (name == known)
				*to = value == "1";
		}
	}
	// Counts of two bodies are scaled by entries into functions, and blocks add up to
	// functions; so both need whole functions.
	options.functions |= options.blocks || options.mode == Mode::CLONE;
	options.all_nests |= options.mode == Mode::CLONE; // whose bodies are compared by their time
	return options;
}

} // namespace mperf
