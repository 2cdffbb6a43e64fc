; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; A loop that is left in several places is counted behind each of them, by what lives on there: the
; value that has taken the round's step where it has, the other where it has not.
; RUN: opt -passes=mperf -mperf-functions -mperf-segment=false -mperf-nests=false -S < %s | FileCheck %s
target datalayout = "e-m:e-i64:64-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

; CHECK-LABEL: define i64 @search(
; CHECK: loop:
; CHECK-NOT: mperf.counter
; CHECK: br i1 %found
; CHECK: more:
; CHECK-NOT: mperf.counter
; CHECK: br i1 %done
; CHECK: freeze i64 %next
; CHECK: add i64 %{{.*}}, 0
; CHECK: freeze i64 %i
; CHECK: add i64 %{{.*}}, 1
define i64 @search(ptr %a, i32 %wanted, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %more ]
  %at = getelementptr inbounds i32, ptr %a, i64 %i
  %is = load i32, ptr %at
  %found = icmp eq i32 %is, %wanted
  br i1 %found, label %here, label %more
more:
  %next = add nuw nsw i64 %i, 1
  %done = icmp eq i64 %next, %n
  br i1 %done, label %nowhere, label %loop
nowhere:
  ret i64 -1
here:
  ret i64 %i
}

; CHECK-LABEL: define void @same_way_out(
; CHECK: more:
; CHECK-NOT: mperf.counter
; CHECK: br i1 %done
; CHECK: %[[REST:mperf.rest.*]] = phi i64 [ {{[01]}}, %{{.*}} ], [ {{[01]}}, %{{.*}} ]
; CHECK: %[[LAST:mperf.last.*]] = phi i64 [ %{{i|next}}, %{{.*}} ], [ %{{i|next}}, %{{.*}} ]
; CHECK: freeze i64 %[[LAST]]
; CHECK: add i64 %{{.*}}, %[[REST]]
define void @same_way_out(ptr %a, i32 %wanted, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %more ]
  %at = getelementptr inbounds i32, ptr %a, i64 %i
  %is = load i32, ptr %at
  %found = icmp eq i32 %is, %wanted
  br i1 %found, label %end, label %more
more:
  %next = add nuw nsw i64 %i, 1
  %done = icmp eq i64 %next, %n
  br i1 %done, label %end, label %loop
end:
  ret void
}

; A value of few bits may have come around with its last step, and what it was before has not.
; CHECK-LABEL: define void @of_few_bits(
; CHECK: freeze i8 %i
; CHECK: add i64 %{{.*}}, 1
define void @of_few_bits(ptr %a) {
entry:
  br label %loop
loop:
  %i = phi i8 [ 0, %entry ], [ %next, %more ]
  %at = getelementptr inbounds i8, ptr %a, i8 %i
  %is = load i8, ptr %at
  %next = add nuw i8 %i, 1
  %zero = icmp eq i8 %is, 0
  br i1 %zero, label %end, label %more
more:
  %one = icmp eq i8 %is, 1
  br i1 %one, label %end, label %loop
end:
  ret void
}
