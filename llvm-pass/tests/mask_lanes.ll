; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; In a loop, masks are added up lane by lane, in turn in several vectors (in one they would be a chain),
; and their lanes once behind it; masks that mean the same share a counter. Lanes of 32 bits serve
; where the loop is sure to end before they are full, and bits are counted where it is not.
; RUN: opt -passes=mperf -mperf-functions -mperf-segment=false -mperf-nests=false -S < %s | FileCheck %s
target datalayout = "e-m:e-i64:64-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

declare void @llvm.masked.store.v4f64.p0(<4 x double>, ptr, i32, <4 x i1>)
declare void @llvm.masked.store.v8f32.p0(<8 x float>, ptr, i32, <8 x i1>)

; CHECK-LABEL: define void @wide(
; CHECK: loop:
; CHECK-DAG: %[[ONE:.*]] = phi <4 x i64> [ zeroinitializer
; CHECK-DAG: %[[OTHER:.*]] = phi <4 x i64> [ zeroinitializer
; CHECK-NOT: ctpop
; CHECK-DAG: sub <4 x i64> %[[ONE]],
; CHECK-DAG: sub <4 x i64> %[[OTHER]],
; CHECK: br i1 %done
; CHECK: end:
; CHECK: add <4 x i64>
; CHECK: call i64 @llvm.vector.reduce.add.v4i64(
; CHECK-NOT: reduce
; CHECK: ret void
define void @wide(ptr %to, ptr %from, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = getelementptr inbounds <4 x double>, ptr %from, i64 %i
  %value = load <4 x double>, ptr %at
  %mask = fcmp ogt <4 x double> %value, zeroinitializer
  %other = fcmp olt <4 x double> %value, <double -1.0, double -1.0, double -1.0, double -1.0>
  call void @llvm.masked.store.v4f64.p0(<4 x double> %value, ptr %to, i32 8, <4 x i1> %mask)
  call void @llvm.masked.store.v4f64.p0(<4 x double> %value, ptr %to, i32 8, <4 x i1> %other)
  %next = add nuw nsw i64 %i, 1
  %done = icmp eq i64 %next, %n
  br i1 %done, label %end, label %loop
end:
  ret void
}
; CHECK-LABEL: define void @short(
; CHECK: loop:
; CHECK: sub <8 x i32>
; CHECK: br i1 %done
; CHECK: zext <8 x i32> %{{.*}} to <8 x i64>
; CHECK: call i64 @llvm.vector.reduce.add.v8i64(
define void @short(ptr %to, ptr %from, i16 %n) {
entry:
  br label %loop
loop:
  %i = phi i16 [ 0, %entry ], [ %next, %loop ]
  %at = getelementptr inbounds <8 x float>, ptr %from, i16 %i
  %value = load <8 x float>, ptr %at
  %mask = fcmp ogt <8 x float> %value, zeroinitializer
  call void @llvm.masked.store.v8f32.p0(<8 x float> %value, ptr %to, i32 4, <8 x i1> %mask)
  %next = add nuw i16 %i, 1
  %done = icmp eq i16 %next, %n
  br i1 %done, label %end, label %loop
end:
  ret void
}
; CHECK-LABEL: define void @endless(
; CHECK: loop:
; CHECK: call i32 @llvm.ctpop.i32(
; CHECK: br i1 %done
define void @endless(ptr %to, ptr %from, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = getelementptr inbounds <8 x float>, ptr %from, i64 %i
  %value = load <8 x float>, ptr %at
  %mask = fcmp ogt <8 x float> %value, zeroinitializer
  call void @llvm.masked.store.v8f32.p0(<8 x float> %value, ptr %to, i32 4, <8 x i1> %mask)
  %next = add nuw i64 %i, 1
  %done = icmp eq i64 %next, %n
  br i1 %done, label %end, label %loop
end:
  ret void
}
