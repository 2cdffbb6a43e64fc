// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lanes, masks and accesses as terms of a block's mix. Fixed and scalable vectors are kept apart,
// since only the running program knows vscale.

#include "mix.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace mperf
{

Extent extent_of(const Type *type)
{
	Extent all;
	if (const auto *vector = dyn_cast<VectorType>(type)) {
		all.vector = true;
		all.scalable = isa<ScalableVectorType>(vector);
		all.issued = all.active = vector->getElementCount().getKnownMinValue();
	}
	return all;
}

uint32_t float_metric(const Type *type)
{
	const Type *element = type->getScalarType();
	if (element->isHalfTy() || element->isBFloatTy())
		return MPERF_METRIC_FP16_OPS;
	if (element->isFloatTy())
		return MPERF_METRIC_FP32_OPS;
	return element->isDoubleTy() ? MPERF_METRIC_FP64_OPS : MPERF_METRIC_FP_WIDE_OPS;
}

bool is_local(const Value *pointer)
{
	return isa<AllocaInst>(getUnderlyingObject(pointer));
}

Quantity *find_quantity(BlockMix &into, Unit unit, Value *value, Value *length, Instruction &at)
{
	for (Quantity &quantity : into.quantities) {
		if (quantity.unit == unit && quantity.value == value && quantity.length == length)
			return &quantity;
	}
	into.quantities.push_back({unit, value, length, &at, {}});
	return &into.quantities.back();
}

Owner find_callee(BlockMix &into, StringRef name, const Instruction &call)
{
	name = GlobalValue::dropLLVMManglingEscape(name);
	const DILocation *location = call.getDebugLoc().get();
	const unsigned line = location ? location->getLine() : 0;
	const StringRef source = line != 0 ? location->getFilename() : StringRef();
	Owner found = OWN;
	while (found < into.callees.size() && into.callees[found].name != name)
		found++;
	if (found == into.callees.size())
		into.callees.push_back({name.str(), source.str(), line, line});
	Callee &callee = into.callees[found];
	if (callee.line == 0) {
		callee.source = source.str();
		callee.line = callee.line_last = line;
	} else if (line != 0 && callee.source == source) {
		callee.line = std::min(callee.line, line);
		callee.line_last = std::max(callee.line_last, line);
	}
	return found + 1;
}

// The lanes of a constant mask; false if it is not constant.
static bool constant_lanes(const Value *mask, uint64_t lanes, bool scalable, uint64_t &ret_active)
{
	const auto *constant = dyn_cast<Constant>(mask);
	if (!constant)
		return false;
	if (constant->isNullValue()) {
		ret_active = 0;
		return true;
	}
	const Constant *splat = constant->getSplatValue();
	if (splat && splat->isOneValue()) {
		ret_active = lanes;
		return true;
	}
	if (scalable)
		return false;
	ret_active = 0;
	for (uint64_t lane = 0; lane < lanes; lane++) {
		const Constant *bit = constant->getAggregateElement(lane);
		if (!bit)
			return false;
		ret_active += bit->isOneValue();
	}
	return true;
}

Extent masked(BlockMix &into, Extent all, Value *mask, Value *length, Instruction &at)
{
	uint64_t active = 0;
	if (!mask || constant_lanes(mask, all.issued, all.scalable, active)) {
		if (length && (!mask || active == all.issued)) {
			all.quantity = find_quantity(into, Unit::VALUE, length, nullptr, at);
			return all;
		}
		if (!length || active == 0) {
			all.active = mask ? active : all.issued;
			return all;
		}
	}
	all.quantity = find_quantity(into, Unit::LANES, mask, length, at);
	return all;
}

void add_lanes(BlockMix &into, const Extent &extent)
{
	if (!extent.vector)
		return;
	const uint32_t variant = extent.scalable ? MPERF_SCALABLE : 0;
	into.mix.add(MPERF_METRIC_LANES_ISSUED, extent.issued, variant);
	if (extent.quantity)
		extent.quantity->mix.add(MPERF_METRIC_LANES_ACTIVE, 1);
	else
		into.mix.add(MPERF_METRIC_LANES_ACTIVE, extent.active, variant);
}

// Adds `each` for each active lane.
static void add_by_lane(BlockMix &into, uint32_t metric, uint64_t each, const Extent &extent)
{
	if (extent.quantity)
		extent.quantity->mix.add(metric, each);
	else
		into.mix.add(metric, each * extent.active, extent.scalable ? MPERF_SCALABLE : 0);
}

void add_operations(BlockMix &into, uint32_t metric, uint64_t each, const Extent &extent)
{
	add_by_lane(into, metric, each, extent);
	add_lanes(into, extent);
}

void add_access(BlockMix &into, bool is_store, uint64_t element_bytes, const Extent &extent,
	const Value *pointer)
{
	into.mix.add(is_store ? MPERF_METRIC_STORES : MPERF_METRIC_LOADS, 1);
	add_by_lane(into, is_store ? MPERF_METRIC_BYTES_STORED : MPERF_METRIC_BYTES_LOADED,
		element_bytes, extent);
	if (pointer && is_local(pointer))
		add_by_lane(into,
			is_store ? MPERF_METRIC_STACK_BYTES_STORED
				 : MPERF_METRIC_STACK_BYTES_LOADED,
			element_bytes, extent);
	add_lanes(into, extent);
}

} // namespace mperf
