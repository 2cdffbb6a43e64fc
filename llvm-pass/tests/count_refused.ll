; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; What has no room for counters, is not code of this module, or must not be touched, stays as it is;
; and a module without anything to count gets nothing.
; RUN: opt -passes=mperf -mperf-functions -mperf-all-nests -mperf-segment=false -S < %s | FileCheck %s
target triple = "x86_64-pc-linux-gnu"

; CHECK-NOT: __mperf_bias
; CHECK-NOT: section "mperf_modules"

@chosen = ifunc i32 (), ptr @resolver

define i32 @implementation() noprofile {
  ret i32 1
}
define ptr @resolver() {
  ret ptr @implementation
}
define i32 @bare() naked {
  call void asm sideeffect "ret", ""()
  unreachable
}
define available_externally i32 @elsewhere() {
  ret i32 2
}
define i32 @untouched() noprofile {
  ret i32 3
}
define i64 @__mperf_of_the_runtime() {
  ret i64 4
}
declare i32 @outside()
