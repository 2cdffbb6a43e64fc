; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; Scalable vectors: masks are counted by the target's own instruction, explicit lengths are summed up
; as they are, RVV's intrinsics by their vl.
; RUN: opt -passes=mperf -mperf-functions -mperf-all-nests -mperf-segment=false -S < %s | FileCheck %s
target datalayout = "e-m:e-p:64:64-i64:64-i128:128-n32:64-S128"
target triple = "riscv64-unknown-linux-gnu"

declare <vscale x 4 x float> @llvm.vp.load.nxv4f32.p0(ptr, <vscale x 4 x i1>, i32)
declare void @llvm.masked.store.nxv4f32.p0(<vscale x 4 x float>, ptr, i32, <vscale x 4 x i1>)
declare <vscale x 2 x float> @llvm.riscv.vle.nxv2f32.i64(<vscale x 2 x float>, ptr, i64)

; CHECK-LABEL: define <vscale x 4 x float> @by_length(
; CHECK: zext i32 %evl to i64
; CHECK-NOT: vcpop
; CHECK: call <vscale x 4 x float> @llvm.vp.load
define <vscale x 4 x float> @by_length(ptr %from, i32 %evl) #0 {
  %value = call <vscale x 4 x float> @llvm.vp.load.nxv4f32.p0(ptr %from, <vscale x 4 x i1> shufflevector (<vscale x 4 x i1> insertelement (<vscale x 4 x i1> poison, i1 true, i64 0), <vscale x 4 x i1> poison, <vscale x 4 x i32> zeroinitializer), i32 %evl)
  ret <vscale x 4 x float> %value
}

; CHECK-LABEL: define void @by_mask(
; CHECK: call i64 @llvm.riscv.vcpop.nxv4i1.i64(<vscale x 4 x i1> %mask, i64 -1)
define void @by_mask(<vscale x 4 x float> %value, ptr %to, <vscale x 4 x i1> %mask) #0 {
  call void @llvm.masked.store.nxv4f32.p0(<vscale x 4 x float> %value, ptr %to, i32 4, <vscale x 4 x i1> %mask)
  ret void
}

; CHECK-LABEL: define <vscale x 2 x float> @by_vl(
; CHECK: add i64 %{{.*}}, %vl
define <vscale x 2 x float> @by_vl(ptr %from, i64 %vl) #0 {
  %value = call <vscale x 2 x float> @llvm.riscv.vle.nxv2f32.i64(<vscale x 2 x float> poison, ptr %from, i64 %vl)
  ret <vscale x 2 x float> %value
}

; Plain scalable vectors need vscale from the reader alone.
; CHECK-LABEL: define <vscale x 4 x float> @plain(
; CHECK-NOT: vscale.i64
; CHECK: ret
define <vscale x 4 x float> @plain(<vscale x 4 x float> %a, <vscale x 4 x float> %b) #0 {
  %sum = fadd <vscale x 4 x float> %a, %b
  ret <vscale x 4 x float> %sum
}
attributes #0 = { "target-features"="+v,+m,+f,+d" }
