; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; Without the option functions, a function is counted in its loops; whole where it has operations on
; floats or vectors outside of them; not at all where it has neither. Callees are told nothing by a
; block that is not counted, and nothing behind a call that may not come back.
; RUN: opt -passes=mperf -mperf-segment=false -mperf-nests=false -S < %s | FileCheck %s
; RUN: opt -passes=mperf -mperf-functions -mperf-segment=false -mperf-nests=false -S < %s | FileCheck --check-prefix=WHOLE %s
; RUN: opt -passes=mperf -mperf-mode=block -mperf-segment=false -mperf-nests=false -S < %s | FileCheck --check-prefix=BLOCK %s
; RUN: MPERF_PASS=functions=1 opt -passes=mperf -mperf-segment=false -mperf-nests=false -S < %s | FileCheck --check-prefix=WHOLE %s
target datalayout = "e-m:e-i64:64-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

declare void @other()
declare double @root(double)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

; CHECK-LABEL: define i64 @no_loop(
; CHECK-NOT: mperf
; CHECK: ret i64
; WHOLE-LABEL: define i64 @no_loop(
; WHOLE: mperf.counter
; WHOLE: ret i64
; BLOCK-LABEL: define i64 @no_loop(
; BLOCK-NOT: mperf
; BLOCK: ret i64
define i64 @no_loop(i64 %a, ptr %to, ptr %from) {
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 16, i1 false)
  %b = add i64 %a, 1
  ret i64 %b
}
; CHECK-LABEL: define void @moves(
; CHECK-NOT: mperf
; CHECK: ret void
define void @moves(ptr %to, ptr %from) {
  %v = load <2 x double>, ptr %from
  store <2 x double> %v, ptr %to
  ret void
}
; CHECK-LABEL: define double @floats(
; CHECK: mperf.counter
; CHECK: ret double
define double @floats(double %a) {
  %b = fmul double %a, 3.0
  ret double %b
}
; CHECK-LABEL: define <4 x i32> @vectors(
; CHECK: mperf.counter
; CHECK: ret <4 x i32>
define <4 x i32> @vectors(<4 x i32> %a) {
  %b = add <4 x i32> %a, %a
  ret <4 x i32> %b
}
; CHECK-LABEL: define double @calls_for_floats(
; CHECK: mperf.counter
; CHECK: ret double
define double @calls_for_floats(double %a) {
  %b = call double @root(double %a)
  ret double %b
}
; Two counters, of the entries into the loop and of its rounds, and nothing around it.
; CHECK-LABEL: define void @around(
; CHECK-NOT: mperf
; CHECK: before:
; CHECK: store i64 %{{.*}}, ptr %mperf.counter
; CHECK: loop:
; CHECK-NOT: mperf
; CHECK: none.loopexit:
; CHECK: store i64 %{{.*}}, ptr %mperf.counter
; CHECK-NOT: mperf
; CHECK: ret void
; WHOLE-LABEL: define void @around(
; WHOLE-COUNT-4: store i64 %{{.*}}, ptr %mperf.counter
; WHOLE: ret void
; BLOCK-LABEL: define void @around(
; BLOCK-COUNT-2: store i64 %{{.*}}, ptr %mperf.counter
; BLOCK-NOT: mperf
; BLOCK: ret void
define void @around(ptr %a, i64 %n, i1 %first, i1 %second) {
entry:
  br i1 %first, label %before, label %beside
beside:
  br i1 %second, label %one, label %none
one:
  call void @other()
  br label %none
before:
  br label %loop
loop:
  %i = phi i64 [ 0, %before ], [ %next, %loop ]
  %at = getelementptr i64, ptr %a, i64 %i
  store i64 %i, ptr %at
  %next = add nuw nsw i64 %i, 1
  %is_last = icmp eq i64 %next, %n
  br i1 %is_last, label %none, label %loop
none:
  ret void
}
; CHECK-LABEL: define internal double @called_outside(
; CHECK: mperf.counter
; CHECK: ret double
; WHOLE-LABEL: define internal double @called_outside(
; WHOLE-NOT: mperf
; WHOLE: ret double
define internal double @called_outside(double %a) noinline {
  %b = fadd double %a, 1.0
  ret double %b
}
; CHECK-LABEL: define internal double @called_inside(
; CHECK-NOT: mperf
; CHECK: ret double
define internal double @called_inside(double %a) noinline {
  %b = fadd double %a, 1.0
  ret double %b
}
; CHECK-LABEL: define void @calls(
define void @calls(ptr %a, i64 %n) {
entry:
  %x = load double, ptr %a
  %y = call double @called_outside(double %x)
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %before, label %end
before:
  br label %loop
loop:
  %i = phi i64 [ 0, %before ], [ %next, %loop ]
  %at = getelementptr double, ptr %a, i64 %i
  %z = call double @called_inside(double %y)
  store volatile double %z, ptr %at
  %next = add nuw nsw i64 %i, 1
  %is_last = icmp eq i64 %next, %n
  br i1 %is_last, label %end, label %loop
end:
  ret void
}
; It is not counted, and may throw all the same.
; CHECK-LABEL: define internal void @leaves(
; CHECK-NOT: mperf
; CHECK: ret void
define internal void @leaves() noinline {
  call void @other()
  ret void
}
; CHECK-LABEL: define internal double @left_behind(
; CHECK: mperf.counter
; CHECK: ret double
define internal double @left_behind(double %a) noinline {
  %b = fadd double %a, 1.0
  ret double %b
}
define double @left(double %a) {
  call void @leaves()
  %b = call double @left_behind(double %a)
  %c = fadd double %b, 1.0
  ret double %c
}
