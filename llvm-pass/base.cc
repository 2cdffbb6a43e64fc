// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A counted function determines once where its counters are: the bias of its thread, which is 0
// before the thread's first counted function, and then constant. That costs a load, a test and an
// addition, so it is placed where it is rarest before all uses: a path that counts nothing pays
// nothing. Functions that only their module calls need no test: functions callable from elsewhere
// test before they call them.
//
// The address is converted to an integer and back, since a counter's block is not part of the array
// that the linker knows: the optimiser would assume that an address derived from the array stays
// within it.
//
// Counters of one function are reached by short offsets, positive or negative, from the base.
//
// In executables of x86-64 no register is needed: the runtime also keeps the bias in the base of
// the segment %gs, which such programs leave unused, so an addition reaches its counter directly.
// The base is computed there only for uses that need an address; the thread's first function is
// detected as elsewhere. For the loop that flow.cc draws (clang 19, -O1, functions=1 nests=0):
//
//                      cmpq    $0, %fs:__mperf_bias@TPOFF      has the thread a block?
//                      je      first
//      again:          testq   %rsi, %rsi
//                      jle     cleanup
//      preheader:      addq    %rsi, %gs:counter.1(%rip)       c1 += n
//      body:           ...                                     unchanged
//                      jne     body
//                      incq    %gs:counter.1+8(%rip)           c2 += 1
//                      retq
//      first:          callq   __mperf_enter_most              keeps general registers
//                      ...                                     goes on as from `again`
//      cleanup:        incq    %gs:counter.1-8(%rip)           c0 += 1
//                      retq

#include "base.h"
#include "emit.h"
#include "gs_base.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/ProfDataUtils.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

using namespace llvm;

namespace mperf
{

namespace
{

constexpr uint32_t COUNTER_BYTES = 8;
// Computing the base at one more place makes the code longer. We rate that like computing it in one
// of this many entries: with 1, a kernel of short loops takes 4.7 points more instructions, with
// 256 the kernels of bench-instrument take 0.02 more. Above POINTS_MAX places, use a single one.
constexpr uint64_t POINT_COST = 16;
constexpr size_t POINTS_MAX = 6;
constexpr uint32_t COLD_WEIGHT = 1, WARM_WEIGHT = 1 << 20;

// How many counters past the first the base may point: as far as the shortest offset reaches. x86
// has a signed byte for it, RISC-V 12 bits.
uint32_t reach(const Module &module)
{
	return Triple(module.getTargetTriple()).isX86() ? 128 / COUNTER_BYTES
							: 2048 / COUNTER_BYTES;
}

// A block runs in one of this many runs of the branch before it, by the branch's probability.
uint64_t rarity(const BasicBlock &block)
{
	const BasicBlock *before = block.getSinglePredecessor();
	uint64_t taken = 0, other = 0;
	const auto *branch = before ? dyn_cast<BranchInst>(before->getTerminator()) : nullptr;
	if (!branch || !extractBranchWeights(*branch, taken, other))
		return 1;
	if (branch->getSuccessor(0) != &block)
		std::swap(taken, other);
	return (taken + other) / std::max<uint64_t>(taken, 1);
}

} // namespace

Base::Base(Emitter &emitter, Function &function, uint32_t first_counter)
    : emitter(emitter), function(function), first(first_counter)
{
	IRBuilder<> builder(&*function.getEntryBlock().begin());
	slot = builder.CreateAlloca(builder.getPtrTy(), nullptr, "mperf.base");
}

Value *Base::address(IRBuilder<> &builder, uint32_t counter)
{
	Value *base = builder.CreateLoad(slot->getAllocatedType(), slot);
	Value *distance[] = {builder.getInt64(0)};
	auto *location = GetElementPtrInst::Create(builder.getInt8Ty(), base, distance);
	builder.Insert(location, "mperf.counter");
	addresses.emplace_back(location, counter);
	return location;
}

Value *Base::load_bias(IRBuilder<> &builder)
{
	return builder.CreateLoad(builder.getInt64Ty(),
		builder.CreateThreadLocalAddress(emitter.bias()), "mperf.bias");
}

// The bias of a thread that may have none yet. x86 can compare and add in memory, so reading the
// word twice takes one instruction less than keeping it in a register, and needs no register.
Value *Base::find_bias(IRBuilder<> &builder)
{
	Value *bias = load_bias(builder);
	Value *none = builder.CreateIsNull(bias);
	MDNode *weights =
		MDBuilder(function.getContext()).createBranchWeights(COLD_WEIGHT, WARM_WEIGHT);
	Instruction *before = &*builder.GetInsertPoint();
	BasicBlock *warm = before->getParent();
	Instruction *end = SplitBlockAndInsertIfThen(none, before, false, weights);
	builder.SetInsertPoint(end);
	Value *given = emitter.call_enter(builder, function);
	builder.SetInsertPoint(before);
	if (Triple(emitter.module.getTargetTriple()).isX86() && !emitter.has_dynamic_tls)
		return load_bias(builder);
	PHINode *either = PHINode::Create(builder.getInt64Ty(), 2, "mperf.bias");
	either->insertBefore(&before->getParent()->front());
	either->addIncoming(bias, warm);
	either->addIncoming(given, end->getParent());
	return either;
}

void Base::compute_at(Instruction *before, bool trusted)
{
	IRBuilder<> builder(before);
	Value *bias = trusted ? load_bias(builder) : find_bias(builder);
	Value *base = builder.CreateAdd(bias, ConstantExpr::getPtrToInt(origin, bias->getType()));
	// Freeze it, so that it stays one register if several blocks use it. Otherwise it would be
	// split into bias and offset, and added again in each access.
	if (n_using > 1)
		base = builder.CreateFreeze(base);
	builder.CreateStore(builder.CreateIntToPtr(base, builder.getPtrTy()), slot);
}

void Base::require_at(Instruction &instruction)
{
	IRBuilder<>(&instruction).CreateLoad(slot->getAllocatedType(), slot);
}

// The first place in a block that uses the base, or its end.
Instruction *Base::first_use(BasicBlock &block)
{
	for (Instruction &instruction : block) {
		const auto *load = dyn_cast<LoadInst>(&instruction);
		if (load && load->getPointerOperand() == slot)
			return &instruction;
	}
	if (CallInst *last = block.getTerminatingMustTailCall())
		return last;
	return block.getTerminator();
}

// Go up the dominator tree: either one place in a block serves all uses below it, or each use gets
// its own place further down, whichever runs less often.
std::vector<BasicBlock *> Base::find_insertion_points(const Frequencies &frequencies)
{
	DenseSet<const BasicBlock *> used;
	for (User *user : slot->users())
		used.insert(cast<Instruction>(user)->getParent());
	n_using = used.size();

	struct Choice {
		uint64_t cost = 0;
		std::vector<BasicBlock *> points;
	};
	DenseMap<const DomTreeNode *, Choice> choices;
	const uint64_t each = frequencies.lookup(&function.getEntryBlock()) / POINT_COST + 1;
	// Blocks added later run as often as the probability of the branch to them says, or else at
	// most as often as their predecessors.
	const auto frequency = [&](const DomTreeNode *node) {
		uint64_t part = 1;
		while (node->getIDom() && !frequencies.count(node->getBlock())) {
			part = std::max(part, rarity(*node->getBlock()));
			node = node->getIDom();
		}
		return frequencies.lookup(node->getBlock()) / part;
	};
	for (const DomTreeNode *node : post_order(dominators.getRootNode())) {
		BasicBlock *block = node->getBlock();
		Choice below;
		for (const DomTreeNode *child : node->children()) {
			Choice &other = choices[child];
			below.cost += other.cost;
			below.points.insert(
				below.points.end(), other.points.begin(), other.points.end());
			other.points.clear();
		}
		const bool has_insertion_point =
			!block->isEHPad() && block->getFirstInsertionPt() != block->end();
		const uint64_t here = frequency(node) + each;
		if (used.count(block) ||
			(has_insertion_point && !below.points.empty() &&
				(here <= below.cost || below.points.size() > POINTS_MAX)))
			below = {here, {block}};
		choices[node] = std::move(below);
	}
	return choices[dominators.getRootNode()].points;
}

// Allocas of fixed size must stay in the entry block.
void Base::keep_locals_first()
{
	for (Instruction &instruction : make_early_inc_range(function.getEntryBlock())) {
		auto *local = dyn_cast<AllocaInst>(&instruction);
		if (local && local != slot && isa<ConstantInt>(local->getArraySize()))
			local->moveBefore(slot);
	}
}

void Base::drop_unused()
{
	for (User *user : make_early_inc_range(slot->users())) {
		if (user->use_empty() && isa<LoadInst>(user))
			cast<Instruction>(user)->eraseFromParent();
	}
}

// Turns loads and stores into accesses through the segment, and leaves the slot to uses that need
// an address.
bool Base::use_segment()
{
	Type *word = Type::getInt64Ty(function.getContext());
	Type *pointer = PointerType::get(function.getContext(), GS_ADDRESS_SPACE);
	bool has_others = false;
	for (const auto &[location, counter] : addresses) {
		Constant *address = ConstantExpr::getAdd(ConstantExpr::getPtrToInt(origin, word),
			cast<Constant>(location->getOperand(1)));
		Constant *behind_gs = ConstantExpr::getIntToPtr(address, pointer);
		for (Use &use : make_early_inc_range(location->uses())) {
			const User *user = use.getUser();
			if (isa<LoadInst>(user) ||
				(isa<StoreInst>(user) && use.getOperandNo() == 1))
				use.set(behind_gs);
		}
		if (!location->use_empty()) {
			has_others = true;
			continue;
		}
		location->eraseFromParent();
	}
	drop_unused();
	return has_others;
}

std::vector<Instruction *> Base::first_uses(const Frequencies &frequencies)
{
	std::vector<Instruction *> points;
	for (BasicBlock *block : find_insertion_points(frequencies))
		points.push_back(first_use(*block));
	return points;
}

// Ensures that the thread has its block before all uses, and leaves the remaining uses to the slot.
void Base::place_behind_gs(ArrayRef<Instruction *> again_at, bool trusted, int64_t middle,
	const Frequencies &frequencies)
{
	dominators.recalculate(function);
	const std::vector<Instruction *> points = first_uses(frequencies);
	if (points.empty())
		return;
	keep_locals_first();
	SmallVector<BasicBlock *, 4> seen_to;
	for (Instruction *before : points) {
		if (trusted)
			break;
		IRBuilder<> builder(before);
		cast<Instruction>(find_bias(builder))->eraseFromParent();
		seen_to.push_back(before->getParent());
	}
	origin = emitter.counter_address(first + middle);
	if (!use_segment())
		return;
	dominators.recalculate(function);
	std::vector<Instruction *> bases = first_uses(frequencies);
	const auto is_late = [&](const Instruction *base) {
		return trusted || any_of(seen_to, [&](const BasicBlock *block) {
			return dominators.dominates(block, base->getParent());
		});
	};
	// If that is too early, use each of the collected points.
	if (!all_of(bases, is_late)) {
		bases.clear();
		for (BasicBlock *block : seen_to)
			bases.push_back(&*block->getFirstInsertionPt());
	}
	for (Instruction *before : bases)
		compute_at(before, true);
	for (Instruction *mark : again_at)
		compute_at(mark->getNextNode(), true);
}

void Base::finish(ArrayRef<Instruction *> again_at, bool trusted, uint32_t n_counters,
	const Frequencies &frequencies)
{
	const uint32_t middle = std::min(n_counters / 2, reach(emitter.module));
	for (const auto &[location, counter] : addresses)
		location->setOperand(
			1, ConstantInt::get(Type::getInt64Ty(function.getContext()),
				   ((int64_t)counter - first - middle) * COUNTER_BYTES));
	if (emitter.has_segment) {
		place_behind_gs(again_at, trusted, middle, frequencies);
	} else {
		dominators.recalculate(function);
		std::vector<Instruction *> points = {
			&*function.getEntryBlock().getFirstNonPHIOrDbgOrAlloca()};
		if (again_at.empty())
			points = first_uses(frequencies);
		if (!points.empty()) {
			origin = emitter.counter_address(first + middle);
			keep_locals_first();
		}
		for (Instruction *before : points)
			compute_at(before, trusted);
		for (Instruction *mark : again_at)
			compute_at(mark->getNextNode(), true);
	}
	drop_unused();
	if (slot->use_empty()) {
		slot->eraseFromParent();
		return;
	}
	dominators.recalculate(function);
	PromoteMemToReg({slot}, dominators);
}

} // namespace mperf
