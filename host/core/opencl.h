/* opencl - the ICD loader, opened at run time, so that everything that needs no device runs on a
 * machine without OpenCL, and its absence is one clear line. Only host/ includes this. */
#ifndef MIMUS_HOST_OPENCL_H
#define MIMUS_HOST_OPENCL_H

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include "status.h"

/* Every OpenCL function that mimus calls; opencl.c finds each in the loader. */
#define MIMUS__CL_FUNCTIONS(X)                                                                     \
    X(clGetPlatformIDs)                                                                            \
    X(clGetPlatformInfo)                                                                           \
    X(clGetDeviceIDs)                                                                              \
    X(clGetDeviceInfo)                                                                             \
    X(clCreateContext)                                                                             \
    X(clReleaseContext)                                                                            \
    X(clCreateCommandQueue)                                                                        \
    X(clReleaseCommandQueue)                                                                       \
    X(clCreateBuffer)                                                                              \
    X(clCreateSubBuffer)                                                                           \
    X(clReleaseMemObject)                                                                          \
    X(clCreateProgramWithSource)                                                                   \
    X(clBuildProgram)                                                                              \
    X(clGetProgramBuildInfo)                                                                       \
    X(clReleaseProgram)                                                                            \
    X(clCreateKernel)                                                                              \
    X(clGetKernelInfo)                                                                             \
    X(clReleaseKernel)                                                                             \
    X(clSetKernelArg)                                                                              \
    X(clEnqueueNDRangeKernel)                                                                      \
    X(clEnqueueReadBuffer)                                                                         \
    X(clEnqueueWriteBuffer)                                                                        \
    X(clEnqueueCopyBuffer)                                                                         \
    X(clEnqueueFillBuffer)                                                                         \
    X(clEnqueueMapBuffer)                                                                          \
    X(clEnqueueUnmapMemObject)                                                                     \
    X(clEnqueueMarkerWithWaitList)                                                                 \
    X(clWaitForEvents)                                                                             \
    X(clGetEventInfo)                                                                              \
    X(clReleaseEvent)                                                                              \
    X(clFlush)                                                                                     \
    X(clFinish)

struct mimus__cl_table {
#define MIMUS__CL_MEMBER(name) __typeof__(&name) name;
    MIMUS__CL_FUNCTIONS(MIMUS__CL_MEMBER)
#undef MIMUS__CL_MEMBER
};

/* Call OpenCL as mimus__cl.clFinish(queue). Valid after mimus__opencl_load. */
extern struct mimus__cl_table mimus__cl;

/* Load OpenCL once: the library that the MIMUS_OPENCL_LIBRARY variable names, else what the
 * process has already (a game that links OpenCL, a preloaded oclgrind), else libOpenCL.so.1.
 * MIMUS_ERR_NO_DEVICE names the package to install. Thread-safe. */
mimus_status mimus__opencl_load(void);

/* "CL_OUT_OF_RESOURCES" for -5. */
const char *mimus__cl_error_name(cl_int code);

#endif
