; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; The way to the counters is looked for where it is needed, not on a path that counts nothing; and
; before a local function is called that counts.
; RUN: opt -passes=mperf -mperf-functions -mperf-all-nests -mperf-segment=false -S < %s | FileCheck %s
target datalayout = "e-m:e-i64:64-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

declare void @slow() nounwind

; CHECK-LABEL: define internal i64 @seldom(
; CHECK: entry:
; CHECK-NOT: mperf
; CHECK: br i1
; CHECK: {{^}}rare:
; CHECK: @__mperf_bias
; CHECK-NOT: __mperf_enter
; CHECK: call void @slow
define internal i64 @seldom(i64 %n) {
entry:
  %is_rare = icmp eq i64 %n, 7
  br i1 %is_rare, label %rare, label %usual, !prof !0
rare:
  call void @slow()
  br label %usual
usual:
  ret i64 %n
}
; CHECK-LABEL: define internal i64 @before(
; CHECK-NOT: __mperf_enter
; CHECK: {{^}}rare:
; CHECK: @__mperf_bias
; CHECK-NOT: __mperf_enter
; CHECK: call void @slow
define internal i64 @before(i64 %n) {
entry:
  %is_rare = icmp eq i64 %n, 9
  br i1 %is_rare, label %rare, label %usual, !prof !0
rare:
  call void @slow()
  br label %usual
usual:
  ret i64 %n
}
; CHECK-LABEL: define i64 @asking(
; CHECK: @__mperf_bias
; CHECK: __mperf_enter
; CHECK: call i64 @before(
; CHECK: {{^}}{{one|two}}:
; CHECK: call i64 @seldom(
define i64 @asking(i64 %n) {
entry:
  %a = call i64 @before(i64 %n)
  %is_one = icmp eq i64 %n, 1
  br i1 %is_one, label %one, label %two
one:
  %b = call i64 @seldom(i64 %a)
  ret i64 %b
two:
  ret i64 %n
}
!0 = !{!"branch_weights", i32 1, i32 1000}
