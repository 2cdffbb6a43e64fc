; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; What a mask lets through is counted by its bits, what a copy moves by its length; constant masks
; and lengths need no counter.
; RUN: opt -passes=mperf -mperf-functions -mperf-all-nests -mperf-segment=false -S < %s | FileCheck %s
target datalayout = "e-m:e-i64:64-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

declare void @llvm.masked.store.v8f32.p0(<8 x float>, ptr, i32, <8 x i1>)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

; CHECK-LABEL: define void @by_mask(
; CHECK: bitcast <8 x i1> %mask to i8
; CHECK: call i32 @llvm.ctpop.i32(
; CHECK: call void @llvm.masked.store
define void @by_mask(<8 x float> %value, ptr %to, <8 x i1> %mask) {
  call void @llvm.masked.store.v8f32.p0(<8 x float> %value, ptr %to, i32 4, <8 x i1> %mask)
  ret void
}
; CHECK-LABEL: define void @by_constant(
; CHECK-NOT: ctpop
; CHECK: ret void
define void @by_constant(<8 x float> %value, ptr %to) {
  call void @llvm.masked.store.v8f32.p0(<8 x float> %value, ptr %to, i32 4, <8 x i1> <i1 1, i1 0, i1 1, i1 0, i1 1, i1 0, i1 0, i1 0>)
  ret void
}
; CHECK-LABEL: define void @by_length(
; CHECK: add i64 %{{.*}}, %n
; CHECK: lshr i64 %{{.*}}, 3
; CHECK: call void @llvm.memcpy
define void @by_length(ptr %to, ptr %from, i64 %n) {
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %n, i1 false)
  ret void
}
; CHECK-LABEL: define void @by_number(
; CHECK-NOT: lshr
; CHECK: ret void
define void @by_number(ptr %to, ptr %from) {
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 64, i1 false)
  ret void
}
