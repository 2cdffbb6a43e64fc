// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loop is identified by its place in the source, not by what the optimiser made of it: the
// function that contains it there, its first line, the calls by which it was inlined, and which
// loop of its nest it is. The vectoriser, the unroller and loop versioning leave copies of one loop
// side by side, with the same origin: they get the same ordinal in their nest, so that a reader
// sums them. Two loops on one line differ in their column, and so in their ordinal.
//
// Outlined OpenMP directives are functions only for the compiler; we charge them to the function
// that contains the directive.

#include "scopes.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Instructions.h"

#include <map>

using namespace llvm;

namespace mperf
{

namespace
{

// Deeper inlining chains are cut; names in C++ libraries nest far less.
constexpr unsigned INLINED_AT_MAX = 16;
constexpr unsigned OUTLINED_MAX = 8; // nested parallel regions
// In names of functions outlined for OpenMP. With -g there are two of each, NAME.omp_outlined and, inlined
// into that, NAME.omp_outlined_debug__; LLVM 16 leaves out NAME.
constexpr char OUTLINED[] = ".omp_outlined";
constexpr char VECTORISER_FLAG[] = "llvm.loop.isvectorized"; // lines of all loops that it leaves

std::string place_of(const DILocation &location)
{
	return location.getFilename().str() + ":" + std::to_string(location.getLine());
}

std::string inlined_at(const DILocation *location)
{
	std::string chain;
	location = location ? location->getInlinedAt() : nullptr;
	for (unsigned n = 0; location && n < INLINED_AT_MAX; n++) {
		chain += (n == 0 ? "" : " ") + place_of(*location);
		location = location->getInlinedAt();
	}
	return chain;
}

// The function that refers to one outlined for OpenMP, or the function itself.
const Function *written_function(const Function *function)
{
	for (unsigned n = 0; n < OUTLINED_MAX; n++) {
		if (!function->getName().contains(OUTLINED) || !function->hasLocalLinkage())
			return function;
		const Function *user = nullptr;
		for (const User *use : function->users()) {
			if (const auto *instruction = dyn_cast<Instruction>(use))
				user = instruction->getFunction();
		}
		if (!user)
			return function;
		function = user;
	}
	return function;
}

// Empty for a function outlined from a directive in an unknown function.
std::string linkage_name(const DISubprogram &subprogram)
{
	const StringRef linkage = subprogram.getLinkageName();
	const StringRef name = linkage.empty() ? subprogram.getName() : linkage;
	return name.take_front(name.find(OUTLINED)).str();
}

// The metadata of a loop. If the unroller removes the branch at the loop's end, it leaves the
// metadata at an exit.
MDNode *metadata_of(const Loop &loop)
{
	if (MDNode *id = loop.getLoopID())
		return id;
	SmallVector<BasicBlock *, 4> exiting;
	loop.getExitingBlocks(exiting);
	for (const BasicBlock *block : exiting) {
		MDNode *id = block->getTerminator()->getMetadata(LLVMContext::MD_loop);
		if (id && none_of(loop, [&](const Loop *inner) { return inner->contains(block); }))
			return id;
	}
	return nullptr;
}

bool has_flag(const Loop &loop, StringRef name)
{
	return findOptionMDForLoopID(metadata_of(loop), name) != nullptr;
}

// Vector code of the vectoriser; its remainder is scalar, or has shorter vectors.
bool has_vectors(const Loop &loop)
{
	for (const BasicBlock *block : loop.blocks()) {
		for (const Instruction &instruction : *block) {
			if (instruction.getType()->isVectorTy())
				return true;
			if (isa<StoreInst>(instruction) &&
				instruction.getOperand(0)->getType()->isVectorTy())
				return true;
		}
	}
	return false;
}

uint32_t loop_flags(const Loop &loop)
{
	if (is_vectorised(loop))
		return MPERF_SCOPE_VECTORISED;
	return has_flag(loop, VECTORISER_FLAG) ? MPERF_SCOPE_REMAINDER : 0;
}

// Distinguishes loops of one nest that are not copies of one another.
using Origin = std::tuple<const DISubprogram *, unsigned, unsigned, std::string>;

Origin origin_of(const DILocation &start)
{
	return {start.getScope()->getSubprogram(), start.getLine(), start.getColumn(),
		inlined_at(&start)};
}

// Ordinals within a loop, or the function.
struct Siblings {
	unsigned n = 0;
	std::map<Origin, unsigned> ordinals;

	unsigned ordinal(const DILocation *start)
	{
		if (!start)
			return ++n;
		auto [entry, is_new] = ordinals.try_emplace(origin_of(*start), n + 1);
		n += is_new;
		return entry->second;
	}
};

Scope loop_scope(const Loop &loop, const DILocation *start, const DILocation *end)
{
	Scope scope;
	scope.kind = MPERF_SCOPE_LOOP;
	scope.flags = loop_flags(loop);
	if (!start) {
		scope.flags |= MPERF_SCOPE_NO_LINES;
		return scope;
	}
	if (const DISubprogram *subprogram = start->getScope()->getSubprogram())
		scope.function = linkage_name(*subprogram);
	scope.source = start->getFilename().str();
	scope.line = start->getLine();
	scope.column = start->getColumn();
	scope.line_last = end && end->getLine() > scope.line ? end->getLine() : scope.line;
	scope.inlined_at = inlined_at(start);
	return scope;
}

// The last line of a loop's own code. The debug location of an OpenMP loop is only its pragma, but
// the code is below it, and samples are matched by lines.
unsigned last_line(const Loop &loop, const DILocation &start)
{
	const DISubprogram *subprogram = start.getScope()->getSubprogram();
	unsigned last = start.getLine();
	for (const BasicBlock *block : loop.blocks())
		for (const Instruction &instruction : *block) {
			const DILocation *location = instruction.getDebugLoc().get();
			if (location && location->getLine() > last &&
				location->getInlinedAt() == start.getInlinedAt() &&
				location->getScope()->getSubprogram() == subprogram &&
				location->getFilename() == start.getFilename())
				last = location->getLine();
		}
	return last;
}

} // namespace

bool is_vectorised(const Loop &loop)
{
	return has_flag(loop, VECTORISER_FLAG) && has_vectors(loop);
}

Scopes::Scopes(const Function &function, const LoopInfo &loops, Table &table) : loops(loops)
{
	Scope whole;
	whole.kind = MPERF_SCOPE_FUNCTION;
	const Function *written = written_function(&function);
	whole.function = written->getName().str();
	if (const DISubprogram *subprogram = function.getSubprogram()) {
		whole.source = subprogram->getFilename().str();
		whole.line = whole.line_last = subprogram->getLine();
	} else {
		whole.flags |= MPERF_SCOPE_NO_LINES;
	}
	function_scope = table.add_scope(whole);

	DenseMap<const Loop *, Siblings> siblings;
	for (const Loop *loop : loops.getLoopsInPreorder()) {
		const Loop *parent = loop->getParentLoop();
		const auto range = loop->getLocRange();
		const DILocation *start = range.getStart().get();
		Scope scope = loop_scope(*loop, start, range.getEnd().get());
		if (start && scope.line_last == scope.line)
			scope.line_last = last_line(*loop, *start);
		// For a function outlined for OpenMP, or an unknown one: the place where it was
		// written.
		if (scope.function.empty() ||
			start->getScope()->getSubprogram() == function.getSubprogram())
			scope.function = whole.function;
		const unsigned ordinal = siblings[parent].ordinal(start);
		scope.parent = (parent ? loop_scopes[parent] : function_scope) + 1;
		if (parent)
			scope.nest = table.scope(loop_scopes[parent]).nest + ".";
		scope.nest += std::to_string(ordinal);
		loop_scopes[loop] = table.add_scope(scope);
	}
}

void Scopes::add_blocks(const Function &function, Table &table)
{
	for (const BasicBlock &block : function) {
		Scope scope;
		scope.kind = MPERF_SCOPE_BLOCK;
		scope.parent = of(&block) + 1;
		scope.function = table.scope(function_scope).function;
		scope.source = table.scope(function_scope).source;
		for (const Instruction &instruction : block) {
			const DILocation *location = instruction.getDebugLoc().get();
			if (!location || location->getLine() == 0)
				continue;
			if (scope.line == 0) {
				scope.line = scope.line_last = location->getLine();
				scope.source = location->getFilename().str();
				scope.inlined_at = inlined_at(location);
			} else if (location->getLine() > scope.line_last &&
				   location->getFilename() == scope.source)
				scope.line_last = location->getLine();
		}
		block_scopes[&block] = table.add_scope(scope);
	}
}

uint32_t Scopes::of(const Loop *loop) const
{
	return loop ? loop_scopes.lookup(loop) : function_scope;
}

uint32_t Scopes::of(const BasicBlock *block) const
{
	const auto found = block_scopes.find(block);
	return found != block_scopes.end() ? found->second : of(loops.getLoopFor(block));
}

} // namespace mperf
