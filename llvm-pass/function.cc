// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One function, from its text to its counters:
//
//      shape it  →  what each block means  →  which counts are needed  →  terms  →  code
//
// Meaning (terms) and counts are apart. Terms say what one run of a block adds to which scope; a
// mode says how a block's count follows from counters. The table's rows are their product, so that
// all modes give the same totals.

#include "function.h"
#include "callers.h"
#include "clone.h"
#include "counts.h"
#include "emit.h"
#include "hoist.h"
#include "mix.h"
#include "nest.h"
#include "prepare.h"
#include "promote.h"
#include "scopes.h"

#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/BlockFrequencyInfo.h"
#include "llvm/Analysis/BranchProbabilityInfo.h"
#include "llvm/Analysis/CFG.h"
#include "llvm/Analysis/DomTreeUpdater.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/LoopUtils.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"

using namespace llvm;

namespace mperf
{

namespace
{

// What one run of a block adds: factors by (scope, metric key)
using Terms = std::map<std::pair<uint32_t, uint32_t>, int64_t>;

class Counting
{
      public:
	Counting(Function &function, Callers &callers, FunctionAnalysisManager &analyses,
		Emitter &emitter, Table &table, const Options &options)
	    : function(function), callers(callers), emitter(emitter), table(table),
	      options(options), target(analyses.getResult<TargetIRAnalysis>(function)),
	      library(analyses.getResult<TargetLibraryAnalysis>(function)),
	      assumptions(analyses.getResult<AssumptionAnalysis>(function))
	{
	}

	void run();

      private:
	void read_blocks(Scopes &scopes);
	void read_structure(Scopes &scopes, LoopInfo &loops);
	void charge(uint32_t scope, const Sum &sum, uint32_t key, int64_t factor);
	void add_terms(const Counts &counts);
	void add_updates(const Counts &counts, Scopes &scopes);
	unsigned lane_bits(const Quantity &quantity, Loop *room, Hoister &hoister) const;
	void emit_quantities(Scopes &scopes, Hoister &hoister);
	void emit_counters(const Counts &counts, Hoister &hoister, const Breaks &breaks);
	void emit_hoisted(const Update &update, Hoister &hoister);
	void emit_update(Instruction *before, uint32_t counter, Value *amount, Loop *loop);
	void emit_nests(Scopes &scopes, DominatorTree &dominators);
	void tell_callees(const Counts &counts, const Breaks &breaks);
	void prepare_calls();
	void emit_base(const Scopes &scopes, const Breaks &breaks);
	void share_entries(const Scopes &scopes, const Counts &counts);
	void copy_body(const Scopes &scopes);
	std::vector<std::string> names_of(const Scopes &scopes);
	bool is_promoted(const BasicBlock &block, bool is_mask) const;

	Function &function;
	Callers &callers;
	Emitter &emitter;
	Table &table;
	const Options &options;
	const TargetTransformInfo &target;
	const TargetLibraryInfo &library;
	AssumptionCache &assumptions;
	LoopInfo *loops = nullptr;
	Base *base = nullptr;
	Promoter *promoter = nullptr;
	bool cloned = false; // it has two bodies, of which this is about one
	std::optional<Clone> clone;
	uint32_t first_counter = 0;
	DenseMap<const BasicBlock *, BlockMix> mixes;
	DenseMap<const BasicBlock *, Terms> terms;
	Frequencies frequencies;
};

void Counting::read_blocks(Scopes &scopes)
{
	MixReader reader(function.getParent()->getDataLayout(), target, library);
	for (BasicBlock &block : function) {
		BlockMix &mix = mixes[&block];
		mix = reader.read(block);
		const uint32_t scope = scopes.of(&block);
		for (const auto &[key, factor] : mix.mix.terms)
			terms[&block][{scope, key}] += factor;
		if (mix.assembly)
			table.scope(scope).flags |= MPERF_SCOPE_ASSEMBLY;
	}
}

// Entries and rounds, which are of loops and functions, whatever block shows them; and how often
// each block ran, where blocks are told of.
void Counting::read_structure(Scopes &scopes, LoopInfo &loops)
{
	const uint32_t entries = metric_key(MPERF_METRIC_ENTRIES);
	const uint32_t counted = metric_key(MPERF_METRIC_COUNTED_ENTRIES);
	// The choice between two bodies counts all entries itself.
	terms[&function.getEntryBlock()][{scopes.of_function(), cloned ? counted : entries}] += 1;
	if (cloned)
		table.scope(scopes.of_function()).flags |= MPERF_SCOPE_CLONED;
	for (const Loop *loop : loops.getLoopsInPreorder()) {
		const uint32_t scope = scopes.of(loop);
		terms[loop->getHeader()][{scope, metric_key(MPERF_METRIC_ITERATIONS)}] += 1;
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

// Outermost loops that are entered once in each entry into the function: in both bodies that is
// counted where the entry is.
void Counting::share_entries(const Scopes &scopes, const Counts &counts)
{
	if (!clone)
		return;
	const Sum &entry = counts.of(&function.getEntryBlock());
	for (const Loop *loop : *loops) {
		const BasicBlock *before = loop->getLoopPreheader();
		if (!before || counts.of(before) != entry)
			continue;
		const uint32_t scope = scopes.of(loop);
		terms[before].erase({scope, metric_key(MPERF_METRIC_ENTRIES)});
		clone->enter_with_function(scope);
	}
}

void Counting::charge(uint32_t scope, const Sum &sum, uint32_t key, int64_t factor)
{
	for (const auto &[counter, times] : sum)
		table.add_term(counter, scope, key, times * factor);
}

void Counting::add_terms(const Counts &counts)
{
	for (BasicBlock &block : function) {
		const Sum &sum = counts.of(&block);
		for (const auto &[place, factor] : terms[&block])
			charge(place.first, sum, place.second, factor);
	}
}

void Counting::add_updates(const Counts &counts, Scopes &scopes)
{
	const uint32_t updates = metric_key(MPERF_METRIC_UPDATES);
	for (const Update &update : counts.updates)
		charge(scopes.of(update.block()), counts.of(update), updates, 1);
	for (BasicBlock &block : function)
		charge(scopes.of(&block), counts.of(&block), updates,
			mixes[&block].quantities.size());
}

// Does it pay to keep a counter of that block in a register while its loop runs? On x86 an addition
// to memory is one instruction, and costs more than a register only where it is the loop's chain.
bool Counting::is_promoted(const BasicBlock &block, bool is_mask) const
{
	if (!options.promote || options.mode == Mode::BLOCK)
		return false;
	if (is_mask || !Triple(function.getParent()->getTargetTriple()).isX86())
		return true;
	const Loop *loop = loops->getLoopFor(&block);
	return loop && loop->isInnermost() && loop->getNumBlocks() == 1;
}

void Counting::emit_update(Instruction *before, uint32_t counter, Value *amount, Loop *loop)
{
	IRBuilder<> builder(before);
	if (loop)
		return promoter->add(builder, *loop, counter, amount);
	Value *place = base->address(builder, counter);
	Value *old = builder.CreateLoad(builder.getInt64Ty(), place);
	builder.CreateStore(builder.CreateAdd(old, amount), place);
}

// The width of a mask's lanes if they can be added up as a vector, which on x86 costs one
// instruction for the three that count a mask's bits; 0: they cannot.
unsigned Counting::lane_bits(const Quantity &quantity, Loop *room, Hoister &hoister) const
{
	const auto *call = dyn_cast<IntrinsicInst>(quantity.at);
	if (!room || !call || quantity.unit != Unit::LANES || quantity.length ||
		!isa<FixedVectorType>(quantity.value->getType()) ||
		!Triple(function.getParent()->getTargetTriple()).isX86())
		return 0;
	const Type *data = call->getType();
	if (data->isVoidTy())
		data = call->getArgOperand(0)->getType();
	const unsigned bits =
		data->getScalarType()->isPointerTy() ? 64 : data->getScalarSizeInBits();
	if (bits == 64)
		return bits;
	const Loop *innermost = loops->getLoopFor(call->getParent());
	return bits == 32 && hoister.is_short(*innermost, *room) ? bits : 0;
}

// Quantities of one block that mean the same share a counter (unrolled loops have such).
void Counting::emit_quantities(Scopes &scopes, Hoister &hoister)
{
	for (BasicBlock &block : function) {
		std::map<std::pair<std::map<uint32_t, int64_t>, unsigned>, uint32_t> counters;
		for (Quantity &quantity : mixes[&block].quantities) {
			Loop *room = is_promoted(block, true)
					     ? promoter->room_for(loops->getLoopFor(&block))
					     : nullptr;
			const unsigned bits = lane_bits(quantity, room, hoister);
			const auto [place, is_new] = counters.try_emplace(
				{quantity.mix.terms, bits}, table.n_counters());
			const uint32_t counter = is_new ? table.add_counter() : place->second;
			for (const auto &[key, factor] : quantity.mix.terms) {
				if (is_new)
					table.add_term(counter, scopes.of(&block), key, factor);
			}
			IRBuilder<> builder(quantity.at);
			if (bits != 0)
				promoter->add_lanes(builder, *room, counter, quantity.value, bits);
			else
				emit_update(quantity.at, counter,
					compute_quantity(builder, quantity), room);
		}
	}
}

// Where in a block counters may be: after what must come first, and after its locals.
Instruction *first_place(BasicBlock &block)
{
	if (block.isEntryBlock())
		return &*block.getFirstNonPHIOrDbgOrAlloca();
	return &*block.getFirstInsertionPt();
}

// The end of a block, or its first call: an update behind a call keeps the base alive through it,
// and makes it no call of a tail.
Instruction *before_calls(BasicBlock &block)
{
	for (Instruction &instruction :
		make_range(first_place(block)->getIterator(), block.end())) {
		if (isa<CallBase>(instruction) && !isa<IntrinsicInst>(instruction))
			return &instruction;
	}
	return block.getTerminator();
}

// Where the edges to a landing pad lead of which one was split: it takes two new pads for that.
using Rests = DenseMap<const BasicBlock *, BasicBlock *>;

// A block between two, in the innermost loop that has both. Dominators are worked out anew when all
// edges are split, and other edges stay as they are.
BasicBlock *split_edge(BasicBlock *from, BasicBlock *to, LoopInfo &loops, Rests &rests)
{
	BasicBlock *between = nullptr;
	if (to->isLandingPad()) {
		SmallVector<BasicBlock *, 2> pads;
		SplitLandingPadPredecessors(to, {from}, ".count", ".rest", pads);
		between = pads.front();
		if (pads.size() > 1) {
			rests[to] = pads[1];
			if (Loop *loop = loops.getLoopFor(to))
				loop->addBasicBlockToLoop(pads[1], loops);
		}
	} else {
		CriticalEdgeSplittingOptions how;
		how.setMergeIdenticalEdges();
		between = SplitKnownCriticalEdge(
			from->getTerminator(), GetSuccessorNumber(from, to), how);
	}
	Loop *loop = loops.getLoopFor(to);
	while (loop && !loop->contains(from))
		loop = loop->getParentLoop();
	if (loop)
		loop->addBasicBlockToLoop(between, loops);
	return between;
}

void Counting::emit_hoisted(const Update &update, Hoister &hoister)
{
	const Hoist &hoist = *update.hoist;
	if (!hoist.walker)
		return emit_update(hoist.place->getTerminator(), update.counter,
			hoister.expand(hoist), nullptr);
	IRBuilder<> builder(&*hoist.loop->getUniqueExitBlock()->getFirstInsertionPt());
	Value *amount = hoister.expand_behind(hoist, builder);
	emit_update(&*builder.GetInsertPoint(), update.counter, amount, nullptr);
}

void Counting::emit_counters(const Counts &counts, Hoister &hoister, const Breaks &breaks)
{
	Type *word = Type::getInt64Ty(function.getContext());
	Rests rests;
	for (const Update &update : counts.updates) {
		if (update.hoist)
			emit_hoisted(update, hoister);
	}
	for (const Update &update : counts.updates) {
		if (update.hoist)
			continue;
		Instruction *before = nullptr;
		BasicBlock *block = update.to;
		if (update.within)
			before = first_place(*block);
		else if (update.from->getUniqueSuccessor() &&
			 !isa<InvokeInst>(update.from->getTerminator())) {
			block = update.from;
			before = is_contained(breaks.may_leave, block) ? block->getTerminator()
								       : before_calls(*block);
		} else {
			while (!is_contained(successors(update.from), block))
				block = rests.lookup(block);
			if (!block->getUniquePredecessor())
				block = split_edge(update.from, block, *loops, rests);
			before = first_place(*block);
		}
		Loop *room = is_promoted(*block, false)
				     ? promoter->room_for(loops->getLoopFor(block))
				     : nullptr;
		emit_update(before, update.counter, ConstantInt::get(word, 1), room);
	}
}

void Counting::emit_nests(Scopes &scopes, DominatorTree &dominators)
{
	const NestTimer timer = {emitter, *base, table, dominators, *loops};
	for (Loop *loop : *loops)
		timer.add(*loop, scopes.of(loop));
}

// The names by which a function is chosen: its own, and those of the loops that are in it now.
std::vector<std::string> Counting::names_of(const Scopes &scopes)
{
	std::vector<std::string> names = {table.scope(scopes.of_function()).function};
	for (const Loop *loop : loops->getLoopsInPreorder()) {
		const std::string &name = table.scope(scopes.of(loop)).function;
		if (!is_contained(names, name))
			names.push_back(name);
	}
	return names;
}

// Before anything is added to the function.
void Counting::copy_body(const Scopes &scopes)
{
	if (!cloned)
		return;
	clone.emplace(function);
	for (const Loop *loop : *loops) {
		if (loop->getLoopPreheader())
			clone->add_nest(*loop, scopes.of(loop), options.nests);
	}
}

// Its callees, that do not look whether the thread has its block, rely on it.
void Counting::prepare_calls()
{
	for (BasicBlock &block : function) {
		for (Instruction &instruction : block) {
			const auto *call = dyn_cast<CallBase>(&instruction);
			const Function *callee = call ? call->getCalledFunction() : nullptr;
			if (callee && callers.is_trusted(*callee))
				base->require_at(instruction);
		}
	}
}

void Counting::emit_base(const Scopes &scopes, const Breaks &breaks)
{
	SmallVector<Instruction *, 4> marks = breaks.marks;
	if (clone) {
		SmallVector<Instruction *, 4> copies = marks;
		clone->map(copies);
		marks.append(copies);
		clone->join(scopes.of_function(), names_of(scopes), emitter, *base, table);
	}
	const bool trusted = callers.is_trusted(function);
	if (!trusted)
		prepare_calls();
	base->place(marks, trusted, table.n_counters() - first_counter, frequencies);
}

// What its callees are entered by, where a block's count says how often it gets to its calls.
void Counting::tell_callees(const Counts &counts, const Breaks &breaks)
{
	if (options.mode != Mode::TREE || (!breaks.split_all && callers.is_left_midway(function)))
		return;
	for (const BasicBlock &block : function) {
		for (const Instruction &instruction : block) {
			if (const auto *call = dyn_cast<CallBase>(&instruction))
				callers.add_calls(*call, counts.of(&block));
		}
	}
}

void Counting::run()
{
	replace_markers(function);
	const Breaks breaks = split_at_breaks(function, options.escapes);
	DominatorTree dominators(function);
	LoopInfo all_loops(dominators);
	loops = &all_loops;
	shape_loops(dominators, all_loops);
	cloned = options.mode == Mode::CLONE && is_cloned(function, all_loops);

	Scopes scopes(function, all_loops, table);
	if (options.blocks)
		scopes.add_blocks(function, table);
	read_blocks(scopes);
	read_structure(scopes, all_loops);

	// Declared before what is made of it: the expander looks at it to its end.
	ScalarEvolution evolution(function, const_cast<TargetLibraryInfo &>(library), assumptions,
		dominators, all_loops);
	SCEVExpander expander(evolution, function.getParent()->getDataLayout(), "mperf");
	Hoister hoister(evolution, dominators, target, expander);
	copy_body(scopes);
	BranchProbabilityInfo probabilities(function, all_loops, &library);
	BlockFrequencyInfo block_frequencies(function, probabilities, all_loops);

	first_counter = table.n_counters();
	const Sum *entries = callers.entries_of(function);
	const Shape shape = {
		function, all_loops, dominators, block_frequencies, probabilities, breaks, entries};
	for (BasicBlock &block : function)
		frequencies[&block] = block_frequencies.getBlockFreq(&block).getFrequency();
	const auto is_needed = [&](const BasicBlock *block) { return !terms[block].empty(); };
	const Counts counts = make_counts(shape, hoister, options, table, is_needed);
	share_entries(scopes, counts);
	add_terms(counts);
	add_updates(counts, scopes);
	tell_callees(counts, breaks);

	Base its_base(emitter, function, first_counter);
	Promoter its_promoter(function, hoister, all_loops);
	base = &its_base;
	promoter = &its_promoter;
	emit_quantities(scopes, hoister);
	emit_counters(counts, hoister, breaks);
	expander.clear();
	dominators.recalculate(function);
	// Edges that were split left loops with exits that others share.
	for (Loop *loop : all_loops.getLoopsInPreorder())
		formDedicatedExitBlocks(loop, &dominators, &all_loops, nullptr, false);
	promoter->finish([&](IRBuilder<> &builder, uint32_t counter) {
		return base->address(builder, counter);
	});
	if (options.nests)
		emit_nests(scopes, dominators);
	emit_base(scopes, breaks);
}

} // namespace

void count_function(Function &function, Callers &callers, FunctionAnalysisManager &analyses,
	Emitter &emitter, Table &table, const Options &options)
{
	Counting(function, callers, analyses, emitter, table, options).run();
}

} // namespace mperf
