; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; What is counted has the runtime, so markers are called without asking for it.
; RUN: opt -passes=mperf -mperf-functions -S < %s | FileCheck %s
target datalayout = "e-m:e-i64:64-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

declare extern_weak void @__mperf_region_begin(ptr) nounwind
declare extern_weak void @other(ptr)
@here = external global i8

; CHECK: declare void @__mperf_region_begin(
; CHECK: declare extern_weak void @other(
; CHECK-LABEL: define void @marked(
; CHECK-NOT: @__mperf_region_begin, null
; CHECK: call void @__mperf_region_begin(
; CHECK: @other, null
define void @marked() {
entry:
  %linked = icmp ne ptr @__mperf_region_begin, null
  br i1 %linked, label %begin, label %inside

begin:
  call void @__mperf_region_begin(ptr @here)
  br label %inside

inside:
  %is = icmp ne ptr @other, null
  br i1 %is, label %call, label %done

call:
  call void @other(ptr @here)
  br label %done

done:
  ret void
}
