; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; One block is one counter; the module gets its array, its table, its row, and the way to its block.
; RUN: opt -passes=mperf -mperf-functions -mperf-all-nests -mperf-segment=false -S < %s | FileCheck %s
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

; CHECK-DAG: @__mperf_bias = linkonce_odr hidden thread_local(initialexec) global i64 0, comdat
; CHECK-DAG: @mperf.counters = private global [1 x i64] zeroinitializer, align 8 #[[COUNTERS:[0-9]+]]
; CHECK-DAG: @mperf.module = private global { i32, i32, ptr, i64, ptr, i64 } { i32 1, i32 1, ptr @mperf.counters, i64 1, ptr @mperf.table, i64 {{[0-9]+}} }, section "mperf_modules", align 8
; CHECK-DAG: @llvm.used = appending global {{.*}}@mperf.module
; CHECK-DAG: @llvm.global_ctors = {{.*}}i32 1, ptr @__mperf_register_object, ptr @__mperf_register_object
; CHECK-DAG: @llvm.global_dtors = {{.*}}i32 1, ptr @__mperf_unregister_object, ptr @__mperf_unregister_object
; CHECK-DAG: @__mperf_object = linkonce_odr hidden global

; CHECK-LABEL: define double @add(
; CHECK: %[[BIAS:.*]] = load i64, ptr
; CHECK: icmp eq i64 %[[BIAS]], 0
; CHECK: @__mperf_enter
; CHECK: load i64, ptr
; CHECK: add i64 %{{.*}}, 1
; CHECK: fadd double
; CHECK-NOT: store
; CHECK: ret double
define double @add(double %a, double %b) {
  %sum = fadd double %a, %b
  ret double %sum
}

; CHECK-LABEL: define linkonce_odr hidden {{.*}}i64 @__mperf_enter{{(_most)?}}()
; CHECK: call i64 @__mperf_thread_enter(ptr @__mperf_object)

; CHECK: attributes #[[COUNTERS]] = { "bss-section"="mperf_counters" }
