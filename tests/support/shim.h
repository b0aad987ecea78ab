/* shim - asks tests/shim/opencl.c, where that is the OpenCL library. */
#ifndef MIMUS_TEST_SHIM_H
#define MIMUS_TEST_SHIM_H

/* For child_run: the library, and what it does; without the OpenCL that oclgrind preloads, whose
 * LLVM does not bear the real driver's beside it. */
#define SHIM(words) "MIMUS_OPENCL_LIBRARY=" MIMUS_SHIM_LIBRARY, "MIMUS_SHIM=" words, "LD_PRELOAD"

/* How often an OpenCL function was called so far. */
unsigned long long shim_calls(const char *function);

#endif
