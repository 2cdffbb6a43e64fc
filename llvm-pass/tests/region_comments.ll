; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; Comments in assembly that mark regions become the calls that the header makes; other assembly stays.
; RUN: opt -passes=mperf -mperf-functions -mperf-all-nests -mperf-segment=false -S < %s | FileCheck %s
target datalayout = "e-m:e-i64:64-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

; CHECK: c"solve\00"
; CHECK-LABEL: define double @marked(
; CHECK: call void @__mperf_region_begin(
; CHECK: fadd
; CHECK: call void @__mperf_region_end(
; CHECK: call void asm sideeffect "# mperf beginning"
; CHECK: call void asm sideeffect "nop"
define double @marked(double %a) {
  call void asm sideeffect "# mperf begin solve", ""()
  %b = fadd double %a, 1.0
  call void asm sideeffect "# mperf end solve", ""()
  call void asm sideeffect "# mperf beginning", ""()
  call void asm sideeffect "nop", ""()
  ret double %b
}
