; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; A loop that goes by more than 1 goes round as often as its step is in its way: in 64 bits the shift
; of a value that it has already, and nothing more; in few bits, where the way may be none and the
; loop comes around, only if a branch before it says otherwise.
; RUN: opt -passes=mperf -mperf-functions -mperf-segment=false -mperf-nests=false -S < %s | FileCheck %s
target datalayout = "e-m:e-i64:64-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

; CHECK-LABEL: define void @by_fours(
; CHECK: %end = and i64 %n, -4
; CHECK-NEXT: %[[ROUNDS:.*]] = lshr i64 %end, 2
; CHECK-NOT: add i64 {{.*}}, -4
; CHECK: add i64 %{{.*}}, %[[ROUNDS]]
; CHECK: loop:
; CHECK-NOT: mperf.counter
; CHECK: br i1 %done
define void @by_fours(ptr %to, i64 %n) {
entry:
  %end = and i64 %n, -4
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = getelementptr float, ptr %to, i64 %i
  store <4 x float> zeroinitializer, ptr %at
  %next = add nuw i64 %i, 4
  %done = icmp eq i64 %next, %end
  br i1 %done, label %behind, label %loop
behind:
  ret void
}

; A way of 0 is 2^15 rounds of 16 bits: how often it goes round again is all that is sure.
; CHECK-LABEL: define void @may_come_around(
; CHECK: add i16 %end, -2
; CHECK: lshr i64 %{{.*}}, 1
; CHECK: add{{.*}} i64 %{{.*}}, 1
; CHECK: loop:
; CHECK-NOT: mperf.counter
; CHECK: br i1 %done
define void @may_come_around(ptr %to, i16 %n) {
entry:
  %end = and i16 %n, -2
  br label %loop
loop:
  %i = phi i16 [ 0, %entry ], [ %next, %loop ]
  %at = getelementptr float, ptr %to, i16 %i
  store float 0.0, ptr %at
  %next = add i16 %i, 2
  %done = icmp eq i16 %next, %end
  br i1 %done, label %behind, label %loop
behind:
  ret void
}
