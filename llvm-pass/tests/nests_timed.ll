; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; A nest is timed if it has floats, vectors or copies of memory, be it in an inner loop; others on
; request, and in two bodies.
; RUN: opt -passes=mperf -mperf-segment=false -S < %s | FileCheck %s
; RUN: opt -passes=mperf -mperf-segment=false -mperf-all-nests -S < %s | FileCheck --check-prefix=ALL %s
; RUN: MPERF_PASS=all-nests=1 opt -passes=mperf -mperf-segment=false -S < %s | FileCheck --check-prefix=ALL %s
; RUN: opt -passes=mperf -mperf-segment=false -mperf-mode=clone -S < %s | FileCheck --check-prefix=ALL %s
; RUN: opt -passes=mperf -mperf-segment=false -mperf-all-nests -mperf-nests=false -S < %s | FileCheck --check-prefix=NONE %s
target datalayout = "e-m:e-i64:64-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

; CHECK-LABEL: define void @integers(
; CHECK-NOT: __mperf_begin
; CHECK: ret void
; ALL-LABEL: define void @integers(
; ALL: __mperf_begin
; ALL: ret void
; NONE-LABEL: define void @integers(
; NONE-NOT: __mperf_begin
define void @integers(ptr %a, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = getelementptr i64, ptr %a, i64 %i
  store i64 %i, ptr %at
  %next = add nuw nsw i64 %i, 1
  %is_last = icmp eq i64 %next, %n
  br i1 %is_last, label %end, label %loop
end:
  ret void
}
; CHECK-LABEL: define void @moved_floats(
; CHECK: __mperf_begin
; CHECK: ret void
define void @moved_floats(ptr %a, ptr %b, i64 %n) {
entry:
  br label %outer
outer:
  %o = phi i64 [ 0, %entry ], [ %next_o, %behind ]
  br label %loop
loop:
  %i = phi i64 [ 0, %outer ], [ %next, %loop ]
  %from = getelementptr double, ptr %a, i64 %i
  %to = getelementptr double, ptr %b, i64 %i
  %x = load double, ptr %from
  store double %x, ptr %to
  %next = add nuw nsw i64 %i, 1
  %is_last = icmp eq i64 %next, %n
  br i1 %is_last, label %behind, label %loop
behind:
  %next_o = add nuw nsw i64 %o, 1
  %is_last_o = icmp eq i64 %next_o, %n
  br i1 %is_last_o, label %end, label %outer
end:
  ret void
}
; CHECK-LABEL: define void @stored_vectors(
; CHECK: __mperf_begin
; CHECK: ret void
define void @stored_vectors(ptr %a, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = getelementptr <4 x i32>, ptr %a, i64 %i
  store <4 x i32> zeroinitializer, ptr %at
  %next = add nuw nsw i64 %i, 1
  %is_last = icmp eq i64 %next, %n
  br i1 %is_last, label %end, label %loop
end:
  ret void
}
; CHECK-LABEL: define void @copies(
; CHECK: __mperf_begin
; CHECK: ret void
define void @copies(ptr %a, ptr %b, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  call void @llvm.memcpy.p0.p0.i64(ptr %a, ptr %b, i64 %n, i1 false)
  %next = add nuw nsw i64 %i, 1
  %is_last = icmp eq i64 %next, %n
  br i1 %is_last, label %end, label %loop
end:
  ret void
}
