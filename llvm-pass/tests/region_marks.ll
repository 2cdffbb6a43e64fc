; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; Where a region begins or ends, the bias is read anew, and what ran before was counted before.
; RUN: opt -passes=mperf -mperf-functions -mperf-all-nests -mperf-segment=false -S < %s | FileCheck %s
target datalayout = "e-m:e-i64:64-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

declare void @__mperf_region_begin(ptr)
declare void @__mperf_region_end(ptr)
@here = external global i8

; CHECK-LABEL: define double @marked(
; CHECK: add i64 %{{.*}}, 1
; CHECK: call void @__mperf_region_begin(
; CHECK: load i64, ptr
; CHECK-NOT: icmp eq
; CHECK: add i64 %{{.*}}, 1
; CHECK: fadd double
; CHECK: call void @__mperf_region_end(
; CHECK: load i64, ptr
; CHECK: add i64 %{{.*}}, 1
; CHECK: fmul double
define double @marked(double %a) {
  call void @__mperf_region_begin(ptr @here)
  %b = fadd double %a, 1.0
  call void @__mperf_region_end(ptr @here)
  %c = fmul double %b, 3.0
  ret double %c
}
