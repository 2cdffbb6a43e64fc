; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; What may not stand twice has one body, which counts always: addresses of blocks, jumps to them,
; calls that must not be copied.
; RUN: opt -passes=mperf -mperf-functions -mperf-all-nests -mperf-segment=false -mperf-mode=clone -S < %s | FileCheck %s
target datalayout = "e-m:e-i64:64-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

@next = global ptr blockaddress(@jumps, %again)

; CHECK-LABEL: define void @jumps(
; CHECK-NOT: load atomic
; CHECK-NOT: .plain
; CHECK: ret void
define void @jumps(ptr %p) {
entry:
  br label %again
again:
  store i32 1, ptr %p
  %to = load ptr, ptr @next
  indirectbr ptr %to, [label %again, label %end]
end:
  ret void
}

declare void @once() noduplicate
declare i32 @all_together() convergent

; CHECK-LABEL: define void @calls_once(
; CHECK-NOT: load atomic
; CHECK: ret void
define void @calls_once(i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  call void @once() noduplicate
  %next = add nuw i64 %i, 1
  %done = icmp eq i64 %next, %n
  br i1 %done, label %end, label %loop
end:
  ret void
}

; CHECK-LABEL: define void @calls_together(
; CHECK-NOT: load atomic
; CHECK: ret void
define void @calls_together(i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %r = call i32 @all_together() convergent
  %next = add nuw i64 %i, 1
  %done = icmp eq i64 %next, %n
  br i1 %done, label %end, label %loop
end:
  ret void
}

; Without branches there is nothing to choose.
; CHECK-LABEL: define void @straight(
; CHECK-NOT: load atomic
; CHECK: ret void
define void @straight(ptr %p) {
  store i32 1, ptr %p
  ret void
}
; CHECK-NOT: section "mperf_choices"
