/* shim - asks tests/shim/opencl.c, where that is the OpenCL library. */
#ifndef MIMUS_TEST_SHIM_H
#define MIMUS_TEST_SHIM_H

/* For child_run: the library, and what it does. */
#define SHIM(words) "MIMUS_OPENCL_LIBRARY=" MIMUS_SHIM_LIBRARY, "MIMUS_SHIM=" words

/* How often an OpenCL function was called so far. */
unsigned long long shim_calls(const char *function);

#endif
