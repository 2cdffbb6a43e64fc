; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; A module that was counted is not counted again, here by a pass that runs twice.
; RUN: opt -passes=mperf,mperf -mperf-functions -mperf-all-nests -mperf-segment=false -S < %s | FileCheck %s
target triple = "x86_64-pc-linux-gnu"

; CHECK: @mperf.counters = private global [1 x i64]
; CHECK-NOT: @mperf.counters.
; CHECK: !{i32 7, !"mperf counted", i32 1}
define i32 @one() {
  ret i32 1
}
