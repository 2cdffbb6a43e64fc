// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The code generator runs after the pass, and adds loads that are not in the program's text: the
// entry of a jump table at each run of a switch, and floating-point constants. A machine moves
// these bytes like any others, so they are counted, as modelled: here we predict what the code
// generator will do.
//
//      switch      one table if all of its cases are dense enough, by the target's own estimate. A
//                  switch that is cut into several tables is ignored.
//      constants   scalars that no instruction holds. They are loaded once for each block that
//                  uses them, and before the outermost loop around it.
//
// What it loads less of is narrowed.cc's.
//
// Source: LLVM 16 and 19, SwitchLoweringUtils.cpp, findJumpTables(); MachineLICM.cpp.

#include "lowered.h"

#include "llvm/ADT/APInt.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/TargetParser/Triple.h"

#include <set>
#include <tuple>

using namespace llvm;

namespace mperf
{

namespace
{

using Found = function_ref<void(const LoweredLoad &)>;

// --- edges -------------------------------------------------------------------------------------

using Parts = SmallVector<std::pair<const BasicBlock *, int64_t>, 4>;

// How often control goes from one block to the other, as a sum of blocks' counts; empty if blocks
// do not determine it.
std::optional<Parts> count_of_edge(const BasicBlock *from, const BasicBlock *to)
{
	if (from->getUniqueSuccessor() == to)
		return Parts({{from, 1}});
	Parts parts = {{to, 1}};
	SmallPtrSet<const BasicBlock *, 4> seen;
	for (const BasicBlock *other : predecessors(to)) {
		if (other == from || !seen.insert(other).second)
			continue;
		if (other->getUniqueSuccessor() != to)
			return std::nullopt;
		parts.emplace_back(other, -1);
	}
	return parts;
}

// --- jump tables -------------------------------------------------------------------------------

// Fewer groups of cases than this become comparisons. Source: TargetLoweringBase.cpp
// (min-jump-table-entries); RISCVISelLowering.cpp.
constexpr unsigned GROUPS_MIN = 4;
constexpr unsigned GROUPS_MIN_RISCV = 5;

// In position-independent code an entry is an offset of 4 bytes; else it is an address, except in
// RISC-V's small code model. Source: getJumpTableEncoding() of TargetLowering and the targets.
// AArch64 makes entries smaller if they fit, which only its code generator knows.
uint64_t entry_bytes(const Module &module)
{
	const Triple triple(module.getTargetTriple());
	const CodeModel::Model model = module.getCodeModel().value_or(CodeModel::Small);
	if (module.getPICLevel() != PICLevel::NotPIC)
		return triple.isX86() && model == CodeModel::Large ? 8 : 4;
	if ((triple.isRISCV64() && model == CodeModel::Small) || triple.isAArch64() ||
		triple.isPPC64())
		return 4;
	return module.getDataLayout().getPointerSize();
}

// Neighbouring values with the same target are one group.
struct Groups {
	unsigned n = 0;
	bool holes = false; // values between the least and the greatest case that are not cases
};

Groups group_cases(const SwitchInst &choice)
{
	SmallVector<std::pair<APInt, const BasicBlock *>, 16> cases;
	for (const auto &one : choice.cases())
		cases.emplace_back(one.getCaseValue()->getValue(), one.getCaseSuccessor());
	llvm::sort(cases, [](const auto &a, const auto &b) { return a.first.slt(b.first); });
	Groups groups;
	for (size_t i = 0; i < cases.size(); i++) {
		const bool adjacent = i > 0 && cases[i].first == cases[i - 1].first + 1;
		groups.holes |= i > 0 && !adjacent;
		groups.n += !adjacent || cases[i].second != cases[i - 1].second;
	}
	return groups;
}

bool becomes_table(
	const SwitchInst &choice, const Groups &groups, const TargetTransformInfo &target)
{
	const bool riscv = Triple(choice.getModule()->getTargetTriple()).isRISCV();
	unsigned entries = 0;
	target.getEstimatedNumberOfCaseClusters(choice, entries, nullptr, nullptr);
	return entries != 0 && groups.n >= (riscv ? GROUPS_MIN_RISCV : GROUPS_MIN);
}

// How often no case matches; empty if the default block is also a case's.
std::optional<Parts> count_of_default(const SwitchInst &choice)
{
	const BasicBlock *to = choice.getDefaultDest();
	if (any_of(choice.cases(), [&](const auto &one) { return one.getCaseSuccessor() == to; }))
		return std::nullopt;
	return count_of_edge(choice.getParent(), to);
}

// The range is checked before the table is read, so values outside it load nothing. If the table
// has holes, we assume that all other values fall into these.
void find_table(const SwitchInst &choice, const TargetTransformInfo &target, Found found)
{
	const Groups groups = group_cases(choice);
	if (!becomes_table(choice, groups, target))
		return;
	const BasicBlock *block = choice.getParent();
	const uint64_t bytes = entry_bytes(*choice.getModule());
	found({block, block, 1, bytes});
	const auto beyond = groups.holes ? std::nullopt : count_of_default(choice);
	for (const auto &[when, times] : beyond.value_or(Parts()))
		found({when, block, -times, bytes});
}

// --- constants ---------------------------------------------------------------------------------

// Is it loaded from memory on that target? RISC-V makes it from an integer if that takes only one
// instruction. Source: X86ISelLowering.cpp and RISCVISelLowering.cpp, isFPImmLegal().
bool is_loaded(const Value *value, const Triple &triple, const TargetTransformInfo &target)
{
	const auto *constant = dyn_cast<ConstantFP>(value);
	const Type *type = value->getType();
	if (!constant || !(type->isFloatTy() || type->isDoubleTy()) ||
		constant->isExactlyValue(0.0))
		return false;
	if (triple.getArch() == Triple::x86_64)
		return true;
	if (!triple.isRISCV64() || constant->isZero())
		return false;
	const APInt bits = constant->getValueAPF().bitcastToAPInt().sext(64);
	return target.getIntImmCost(bits, Type::getInt64Ty(value->getContext()),
		       TargetTransformInfo::TCK_SizeAndLatency) > 1;
}

bool is_call(const Instruction &instruction)
{
	const auto *call = dyn_cast<CallBase>(&instruction);
	if (!call || call->isInlineAsm())
		return false;
	if (const auto *move = dyn_cast<MemIntrinsic>(call))
		return !isa<ConstantInt>(move->getLength());
	return !isa<IntrinsicInst>(call);
}

// Loops through which a register can hold a constant. A block that ends with an indirect jump is
// duplicated into its predecessors, after which the loop has no single header.
bool keeps_constants(const Loop &loop, bool calls_destroy)
{
	if (!loop.getLoopPreheader())
		return false;
	return none_of(loop.blocks(), [&](const BasicBlock *block) {
		return isa<IndirectBrInst>(block->getTerminator()) ||
		       (calls_destroy && any_of(*block, is_call));
	});
}

class Constants
{
      public:
	Constants(const Function &function, const LoopInfo &loops,
		const TargetTransformInfo &target, Found found)
	    : loops(loops), target(target), triple(function.getParent()->getTargetTriple()),
	      moves(!function.hasOptNone()), found(found)
	{
	}

	void read(const BasicBlock &block)
	{
		unsigned calls = 0;
		for (const Instruction &instruction : block) {
			if (!isa<PHINode>(instruction))
				read(instruction, calls);
			calls += calls_destroy() && is_call(instruction);
		}
		for (const BasicBlock *next : successors(&block)) {
			for (const PHINode &phi : next->phis())
				add(phi.getIncomingValueForBlock(&block), block, calls, next);
		}
	}

      private:
	// On x86 no vector register survives a call. Source: System V ABI, AMD64, 3.2.1.
	bool calls_destroy() const
	{
		return triple.isX86();
	}

	bool is_loaded(const Value *value) const
	{
		return mperf::is_loaded(value, triple, target);
	}

	void read(const Instruction &instruction, unsigned calls)
	{
		const BasicBlock &block = *instruction.getParent();
		if (isa<StoreInst>(instruction)) // stored as an integer with the same bits
			return;
		// Doubling is an addition.
		if (instruction.getOpcode() == Instruction::FMul &&
			is_two(instruction.getOperand(1)))
			return;
		// One of two constants is loaded, from a computed address.
		if (isa<SelectInst>(instruction) && is_loaded(instruction.getOperand(1)) &&
			is_loaded(instruction.getOperand(2)))
			return add(instruction.getOperand(1), block, calls);
		for (const Value *operand : instruction.operands())
			add(operand, block, calls);
	}

	static bool is_two(const Value *value)
	{
		const auto *constant = dyn_cast<ConstantFP>(value);
		return constant && constant->isExactlyValue(2.0);
	}

	// `next`: used only on the edge to that block.
	void add(const Value *value, const BasicBlock &block, unsigned calls,
		const BasicBlock *next = nullptr)
	{
		if (!is_loaded(value))
			return;
		const BasicBlock *when = &block;
		for (const Loop *loop = loops.getLoopFor(&block); loop && stays_in(*loop);
			loop = loop->getParentLoop())
			when = loop->getLoopPreheader();
		if (!seen.insert({when, when == &block ? calls : 0, value}).second)
			return;
		const uint64_t bytes = value->getType()->getPrimitiveSizeInBits() / 8;
		if (!next || when != &block)
			return found({when, when, 1, bytes});
		for (const auto &[part, times] : count_of_edge(&block, next).value_or(Parts()))
			found({part, &block, times, bytes});
	}

	bool stays_in(const Loop &loop)
	{
		const auto [entry, is_new] = keeping.try_emplace(&loop, false);
		if (is_new)
			entry->second = moves && keeps_constants(loop, calls_destroy());
		return entry->second;
	}

	const LoopInfo &loops;
	const TargetTransformInfo &target;
	const Triple triple;
	const bool moves; // out of loops
	Found found;
	DenseMap<const Loop *, bool> keeping;
	std::set<std::tuple<const BasicBlock *, unsigned, const Value *>> seen;
};

} // namespace

void find_lowered_loads(const Function &function, const LoopInfo &loops,
	const TargetTransformInfo &target, Found found)
{
	Constants constants(function, loops, target, found);
	for (const BasicBlock &block : function) {
		if (const auto *choice = dyn_cast<SwitchInst>(block.getTerminator()))
			find_table(*choice, target, found);
		constants.read(block);
	}
}

} // namespace mperf
