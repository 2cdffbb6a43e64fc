// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Terms say what one run of a block adds to which scope: what its instructions count, the loads
// that the code generator adds, and the entries and iterations of loops and functions.

#include "meaning.h"
#include "lowered.h"
#include "reader.h"
#include "rounds.h"
#include "scopes.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace mperf
{

namespace
{

struct Reading {
	Function &function;
	const LoopInfo &loops;
	const Scopes &scopes;
	const TargetTransformInfo &target;
	Table &table;
	Meaning meaning;
	std::map<std::pair<uint32_t, std::string>, uint32_t> callees; // scopes

	uint32_t callee_scope(uint32_t caller, const Callee &callee);
	void read_blocks(const TargetLibraryInfo &library);
	void read_lowered();
	void read_structure(bool cloned);
};

// The single scope of a callee within that scope; its lines cover all calls.
uint32_t Reading::callee_scope(uint32_t caller, const Callee &callee)
{
	const auto [place, is_new] = callees.try_emplace({caller, callee.name}, 0);
	if (is_new) {
		Scope scope;
		scope.kind = MPERF_SCOPE_CALLEE;
		scope.parent = caller + 1;
		scope.function = callee.name;
		place->second = table.add_scope(scope);
	}
	Scope &scope = table.scope(place->second);
	if (scope.line == 0) {
		scope.source = callee.source;
		scope.line = callee.line;
		scope.line_last = callee.line_last;
	} else if (callee.line != 0 && callee.source == scope.source) {
		scope.line = std::min(scope.line, callee.line);
		scope.line_last = std::max(scope.line_last, callee.line_last);
	}
	return place->second;
}

void Reading::read_blocks(const TargetLibraryInfo &library)
{
	MixReader reader(function.getParent()->getDataLayout(), target, library);
	for (BasicBlock &block : function) {
		BlockMix mix = reader.read(block);
		const uint32_t scope = scopes.of(&block);
		std::vector<uint32_t> scope_of = {scope};
		for (const Callee &callee : mix.callees)
			scope_of.push_back(callee_scope(scope, callee));
		for (const auto &[place, factor] : mix.mix.terms)
			meaning.terms[&block][{scope_of[place.first], place.second}] += factor;
		for (Quantity &quantity : mix.quantities) {
			Mix by_scope;
			for (const auto &[place, factor] : quantity.mix.terms) {
				const Owner owner =
					place.first == OWN ? OWN : scope_of[place.first] + 1;
				by_scope.terms[{owner, place.second}] += factor;
			}
			quantity.mix = std::move(by_scope);
		}
		meaning.quantities[&block] = std::move(mix.quantities);
		if (mix.assembly)
			table.scope(scope).flags |= MPERF_SCOPE_ASSEMBLY;
	}
}

// Adds the loads of the code generator.
void Reading::read_lowered()
{
	find_lowered_loads(function, loops, target, [&](const LoweredLoad &load) {
		const uint32_t scope = scopes.of(load.of);
		Terms &its = meaning.terms[load.when];
		its[{scope, metric_key(MPERF_METRIC_LOADS, MPERF_MODELLED)}] += load.n;
		its[{scope, metric_key(MPERF_METRIC_BYTES_LOADED, MPERF_MODELLED)}] +=
			load.n * (int64_t)load.bytes;
	});
}

// Entries and iterations, which belong to loops and functions, whichever block counts them; and how
// often each block ran, if the table has blocks.
void Reading::read_structure(bool cloned)
{
	auto &terms = meaning.terms;
	const uint32_t entries = metric_key(MPERF_METRIC_ENTRIES);
	const uint32_t counted = metric_key(MPERF_METRIC_COUNTED_ENTRIES);
	// With two bodies, the code that chooses counts all entries.
	terms[&function.getEntryBlock()][{scopes.of_function(), cloned ? counted : entries}] += 1;
	if (cloned)
		table.scope(scopes.of_function()).flags |= MPERF_SCOPE_CLONED;
	for (const Loop *loop : loops.getLoopsInPreorder()) {
		const uint32_t scope = scopes.of(loop);
		for (const Round &round : find_rounds(*loop))
			terms[round.block][{scope, metric_key(MPERF_METRIC_ITERATIONS,
							   round.scalable ? MPERF_SCALABLE : 0)}] +=
				round.n;
		const BasicBlock *before = loop->getLoopPreheader();
		if (!before)
			continue;
		terms[before][{scope, entries}] += 1;
		if (cloned && loop->isOutermost()) {
			terms[before][{scope, counted}] += 1;
			table.scope(scope).flags |= MPERF_SCOPE_CLONED;
		}
	}
	for (const BasicBlock &block : function)
		if (table.scope(scopes.of(&block)).kind == MPERF_SCOPE_BLOCK)
			terms[&block][{scopes.of(&block), entries}] += 1;
}

} // namespace

Meaning read_meaning(Function &function, const LoopInfo &loops, const Scopes &scopes,
	const TargetTransformInfo &target, const TargetLibraryInfo &library, Table &table,
	bool cloned)
{
	Reading reading = {function, loops, scopes, target, table, Meaning(), {}};
	reading.read_blocks(library);
	reading.read_lowered();
	reading.read_structure(cloned);
	return std::move(reading.meaning);
}

} // namespace mperf
