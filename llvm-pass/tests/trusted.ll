; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; A local function that is called where its thread is sure to have a block needs no test for it; one
; that is called before, or whose address is known elsewhere, does.
; RUN: opt -passes=mperf -mperf-segment=false -mperf-mode=block -S < %s | FileCheck %s
target datalayout = "e-m:e-i64:64-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

; CHECK-LABEL: define internal double @local(
; CHECK-NOT: __mperf_enter
; CHECK: ret double
define internal double @local(double %a) noinline {
  %b = fadd double %a, 1.0
  ret double %b
}
; CHECK-LABEL: define internal double @of_local(
; CHECK-NOT: __mperf_enter
; CHECK: ret double
define internal double @of_local(double %a) noinline {
  %b = call double @local(double %a)
  ret double %b
}
; CHECK-LABEL: define internal double @known(
; CHECK: __mperf_enter
define internal double @known(double %a) noinline {
  %b = fadd double %a, 2.0
  ret double %b
}
@pointer = global ptr @known
; CHECK-LABEL: define double @caller(
; CHECK: __mperf_enter
; CHECK: call double @local(
define double @caller(double %a) {
  %b = call double @local(double %a)
  %c = call double @known(double %b)
  %d = call double @of_local(double %c)
  ret double %d
}
