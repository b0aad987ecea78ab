#include "launch.h"

mimus_status mimus__kernel_new(mimus__kernel *out, const mimus__program *program,
                               const char *name) {
    mimus__kernel kernel = {.device = program->device, .name = name};
    cl_int code;
    *out = (mimus__kernel){0};
    kernel.handle = mimus__cl.clCreateKernel(program->handle, name, &code);
    if (kernel.handle == NULL)
        return mimus__fail_prefix(mimus__device_check(program->device, code, "clCreateKernel"),
                                  "kernel %s", name);
    code = mimus__cl.clGetKernelInfo(kernel.handle, CL_KERNEL_NUM_ARGS, sizeof kernel.arguments,
                                     &kernel.arguments, NULL);
    if (code != CL_SUCCESS) {
        mimus__cl.clReleaseKernel(kernel.handle);
        return mimus__fail_prefix(mimus__device_check(program->device, code, "clGetKernelInfo"),
                                  "kernel %s", name);
    }
    *out = kernel;
    return MIMUS_OK;
}

void mimus__kernel_free(mimus__kernel *kernel) {
    if (kernel == NULL || kernel->handle == NULL)
        return;
    mimus__cl.clReleaseKernel(kernel->handle);
    *kernel = (mimus__kernel){0};
}

/* Dimensions that both sizes leave at 0 are not used. */
static mimus__grid used_dimensions(mimus__grid grid) {
    for (int i = 1; i < 3; i++) {
        if (grid.global[i] == 0 && grid.local[i] == 0)
            grid.global[i] = grid.local[i] = 1;
    }
    return grid;
}

static mimus_status check_grid(const mimus__kernel *kernel, const mimus__grid *grid) {
    size_t group = 1;
    bool whole = true;
    for (int i = 0; i < 3; i++) {
        whole = whole && grid->local[i] > 0 && grid->global[i] > 0 &&
                grid->global[i] % grid->local[i] == 0;
        group *= grid->local[i];
    }
    if (!whole)
        return mimus__fail(MIMUS_ERR_DEVICE,
                           "kernel %s: %zu x %zu x %zu work-items are not whole groups of %zu x "
                           "%zu x %zu",
                           kernel->name, grid->global[0], grid->global[1], grid->global[2],
                           grid->local[0], grid->local[1], grid->local[2]);
    const mimus__device_info *info = mimus__device_get_info(kernel->device);
    if (group > info->max_group)
        return mimus__fail(MIMUS_ERR_DEVICE, "kernel %s: groups of %zu, at most %u on %s",
                           kernel->name, group, (unsigned)info->max_group, info->name);
    return MIMUS_OK;
}

static mimus_status set_arguments(const mimus__kernel *kernel, const mimus__arg *arguments,
                                  size_t count) {
    if (count != kernel->arguments)
        return mimus__fail(MIMUS_ERR_DEVICE, "kernel %s takes %u arguments, not %zu", kernel->name,
                           (unsigned)kernel->arguments, count);
    for (cl_uint i = 0; i < kernel->arguments; i++) {
        cl_int code =
            mimus__cl.clSetKernelArg(kernel->handle, i, arguments[i].bytes, arguments[i].value);
        if (code != CL_SUCCESS)
            return mimus__fail_prefix(mimus__device_check(kernel->device, code, "clSetKernelArg"),
                                      "kernel %s, argument %u of %zu bytes", kernel->name,
                                      (unsigned)i, arguments[i].bytes);
    }
    return MIMUS_OK;
}

mimus_status mimus__launch_list(const mimus__kernel *kernel, mimus__grid grid,
                                const mimus__arg *arguments, size_t count) {
    mimus_status status = MIMUS_OK;
    grid = used_dimensions(grid);
    MIMUS_TRY(check_grid(kernel, &grid));
    MIMUS_TRY(set_arguments(kernel, arguments, count));
    cl_int code =
        mimus__cl.clEnqueueNDRangeKernel(mimus__device_queue(kernel->device), kernel->handle, 3,
                                         NULL, grid.global, grid.local, 0, NULL, NULL);
    if (code != CL_SUCCESS) {
        status = mimus__device_check(kernel->device, code, "clEnqueueNDRangeKernel");
        status = mimus__fail_prefix(
            status, "kernel %s, %zu x %zu x %zu work-items in groups of %zu x %zu x %zu",
            kernel->name, grid.global[0], grid.global[1], grid.global[2], grid.local[0],
            grid.local[1], grid.local[2]);
        goto out;
    }
    mimus__device_count_launch(kernel->device);
out:
    return status;
}
