// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One function, from its text to its counters:
//
//      shape it  →  what each block means  →  which counts are needed  →  rows  →  code
//      prepare      meaning                   counts                      rows     placement
//
// Each stage passes a value to the next. Meaning and counts are independent of each other, and the
// rows of the table are their product.

#include "function.h"
#include "base.h"
#include "callers.h"
#include "clone.h"
#include "counts.h"
#include "emit.h"
#include "hoist.h"
#include "meaning.h"
#include "placement.h"
#include "prepare.h"
#include "remarks.h"
#include "rows.h"
#include "scopes.h"
#include "timed_loop.h"
#include "wanted.h"

#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/BlockFrequencyInfo.h"
#include "llvm/Analysis/BranchProbabilityInfo.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"

using namespace llvm;

namespace mperf
{

namespace
{

// Before anything is added to the function.
void copy_body(Clone &clone, const LoopInfo &loops, const Scopes &scopes, const Options &options)
{
	for (const Loop *loop : loops) {
		if (loop->getLoopPreheader())
			clone.add_nest(*loop, scopes.of(loop), options.nests);
	}
}

// Outermost loops that each entry into the function enters once: in both bodies the entry counts
// them.
void share_entries(Function &function, const LoopInfo &loops, const Scopes &scopes,
	const Counts &counts, Meaning &meaning, Clone &clone)
{
	const Sum &entry = counts.of(&function.getEntryBlock());
	for (const Loop *loop : loops) {
		const BasicBlock *before = loop->getLoopPreheader();
		if (!before || counts.of(before) != entry)
			continue;
		const uint32_t scope = scopes.of(loop);
		meaning.terms[before].erase({scope, metric_key(MPERF_METRIC_ENTRIES)});
		clone.enter_with_function(scope);
	}
}

// The names by which a function is selected: its own, and those of functions whose loops were
// inlined.
std::vector<std::string> names_of(const LoopInfo &loops, const Scopes &scopes, Table &table)
{
	std::vector<std::string> names = {table.scope(scopes.of_function()).function};
	for (const Loop *loop : loops.getLoopsInPreorder()) {
		const std::string &name = table.scope(scopes.of(loop)).function;
		if (!is_contained(names, name))
			names.push_back(name);
	}
	return names;
}

// While these run, readers cannot compare their counts with their time.
void flag_hoisted(const Counts &counts, const Scopes &scopes, Table &table)
{
	for (const Loop *loop : counts.hoisted)
		table.scope(scopes.of(loop->getOutermostLoop())).flags |= MPERF_SCOPE_HOISTED;
}

// The begins and ends of regions, in both bodies.
SmallVector<Instruction *, 4> marks_of(const Breaks &breaks, std::optional<Clone> &clone)
{
	SmallVector<Instruction *, 4> marks = breaks.marks;
	if (clone) {
		SmallVector<Instruction *, 4> copies = marks;
		clone->map(copies);
		marks.append(copies);
	}
	return marks;
}

// Tells callees how often they are entered, if block counts show how often its calls run.
void tell_callees(
	const Function &function, Callers &callers, const Counts &counts, const Blocks &dropped)
{
	for (const BasicBlock &block : function) {
		if (dropped.count(&block))
			continue;
		for (const Instruction &instruction : block) {
			if (const auto *call = dyn_cast<CallBase>(&instruction))
				callers.add_calls(*call, counts.of(&block));
		}
	}
}

// Callees that do not check for the thread's block rely on the caller to have it.
void prepare_calls(Function &function, const Callers &callers, Base &base)
{
	for (BasicBlock &block : function) {
		for (Instruction &instruction : block) {
			const auto *call = dyn_cast<CallBase>(&instruction);
			const Function *callee = call ? call->getCalledFunction() : nullptr;
			if (callee && callers.is_trusted(*callee))
				base.require_at(instruction);
		}
	}
}

void time_loops(const LoopTimer &timer, const Scopes &scopes, bool all)
{
	for (Loop *loop : timer.loops)
		if (all || is_timed(*loop))
			timer.add(*loop, scopes.of(loop));
}

Frequencies frequencies_of(Function &function, const BlockFrequencyInfo &info)
{
	Frequencies frequencies;
	for (BasicBlock &block : function)
		frequencies[&block] = info.getBlockFreq(&block).getFrequency();
	return frequencies;
}

} // namespace

void count_function(Function &function, Callers &callers, FunctionAnalysisManager &analyses,
	Emitter &emitter, Table &table, const Options &options)
{
	const auto &target = analyses.getResult<TargetIRAnalysis>(function);
	auto &library = analyses.getResult<TargetLibraryAnalysis>(function);
	auto &assumptions = analyses.getResult<AssumptionAnalysis>(function);

	part_indirect_jumps(function);
	const Breaks breaks = split_at_breaks(function, options.escapes);
	DominatorTree dominators(function);
	LoopInfo loops(dominators);
	shape_loops(dominators, loops);
	const bool cloned = options.mode == Mode::CLONE && is_cloned(function, loops);

	Scopes scopes(function, loops, table);
	if (options.blocks)
		scopes.add_blocks(function, table);
	Meaning meaning = read_meaning(function, loops, scopes, target, library, table, cloned);
	const Blocks dropped =
		options.functions ? Blocks()
				  : drop_outside_loops(function, loops, scopes, table, meaning);

	std::optional<Clone> clone;
	if (cloned)
		copy_body(clone.emplace(function), loops, scopes, options);
	// Declared first: the expander uses it until its own end.
	ScalarEvolution evolution(function, library, assumptions, dominators, loops);
	SCEVExpander expander(evolution, function.getParent()->getDataLayout(), "mperf");
	Hoister hoister(evolution, dominators, target, expander);
	BranchProbabilityInfo probabilities(function, loops, &library, &dominators);
	BlockFrequencyInfo block_frequencies(function, probabilities, loops);
	const Frequencies frequencies = frequencies_of(function, block_frequencies);

	const uint32_t first_counter = table.n_counters();
	const Sum *entries = callers.entries_of(function);
	const Shape shape = {function, loops, dominators, block_frequencies, probabilities, breaks,
		dropped, entries};
	const Counts counts = make_counts(shape, hoister, options, table,
		[&](const BasicBlock *block) { return !meaning.terms[block].empty(); });
	remark_counters(function, counts);
	flag_hoisted(counts, scopes, table);
	if (clone)
		share_entries(function, loops, scopes, counts, meaning, *clone);
	add_rows(function, meaning, counts, scopes, table);
	if (options.mode == Mode::TREE && (breaks.split_all || !callers.is_left_midway(function)))
		tell_callees(function, callers, counts, dropped);

	Base base(emitter, function, first_counter);
	Placer placer(function, loops, hoister, base, options);
	placer.add_quantities(meaning, scopes, table);
	placer.add_counters(counts, breaks);
	expander.clear();
	placer.finish(dominators);
	if (options.nests)
		time_loops({emitter, base, table, loops}, scopes, options.all_nests);
	const auto marks = marks_of(breaks, clone);
	if (clone)
		clone->join(
			scopes.of_function(), names_of(loops, scopes, table), emitter, base, table);
	const bool trusted = callers.is_trusted(function);
	if (!trusted)
		prepare_calls(function, callers, base);
	base.finish(marks, trusted, table.n_counters() - first_counter, frequencies);
}

} // namespace mperf
