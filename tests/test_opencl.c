/* Loading OpenCL, with and without one. */
#include "child.h"
#include "shim.h"
#include "support.h"

#include "discovery.h"
#include "file.h"

#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

/* ------------------------------------------------------- in a child process */

static mimus_status load(void) {
    return mimus__opencl_load();
}

static mimus_status discover(void) {
    mimus__discovery found;
    mimus_status status = mimus__discovery_run(&found);
    mimus__discovery_clear(&found);
    return status;
}

static void *load_in_thread(void *result) {
    *(mimus_status *)result = mimus__opencl_load();
    if (mimus__cl.clFinish == NULL)
        *(mimus_status *)result = MIMUS_ERR_ARGUMENT;
    return NULL;
}

static mimus_status load_in_threads(void) {
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    mimus_status results[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, load_in_thread, &results[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        if (results[i] != MIMUS_OK)
            return mimus__fail(MIMUS_ERR_DATA, "thread %d: %s", i, mimus_status_text(results[i]));
    }
    return MIMUS_OK;
}

/* A failure must reach every call and every thread, not only the one that tried. */
static mimus_status load_again(void) {
    if (mimus__opencl_load() == MIMUS_OK)
        return MIMUS_OK;
    mimus__fail(MIMUS_ERR_DATA, "another failure in between");
    return mimus__opencl_load();
}

static const child_action actions[] = {
    {"load", load},
    {"discover", discover},
    {"load-in-threads", load_in_threads},
    {"load-again", load_again},
    {NULL, NULL},
};

/* --------------------------------------------------------------------- tests */

START_TEST(a_missing_loader_names_the_package) {
    char search[600];
    test_ok(mimus__file_replace(test_folder_path("libOpenCL.so.1"), "not a library", 13));
    test_ok(mimus__file_replace(test_folder_path("libOpenCL.so"), "not a library", 13));
    snprintf(search, sizeof search, "LD_LIBRARY_PATH=%s", test_folder());
    child_expect("load", MIMUS_ERR_NO_DEVICE,
                 "no OpenCL loader (libOpenCL.so.1): install ocl-icd-libopencl1 (Debian, Ubuntu) "
                 "and a driver such as pocl-opencl-icd",
                 search, "MIMUS_OPENCL_LIBRARY", "LD_PRELOAD");
    test_folder_remove();
}
END_TEST

START_TEST(a_library_of_the_users_is_taken_or_refused) {
    child_expect("load", MIMUS_ERR_NO_DEVICE, "cannot open MIMUS_OPENCL_LIBRARY: /no/such.so",
                 "MIMUS_OPENCL_LIBRARY=/no/such.so");
    child_expect("load", MIMUS_ERR_NO_DEVICE,
                 "the OpenCL loader lacks clGetPlatformIDs: mimus needs OpenCL 1.2",
                 "MIMUS_OPENCL_LIBRARY=libm.so.6");
    child_expect("load-again", MIMUS_ERR_NO_DEVICE, "/no/such.so",
                 "MIMUS_OPENCL_LIBRARY=/no/such.so");
    child_expect("load", MIMUS_OK, "", SHIM(""));
    child_expect("load", MIMUS_OK, "", "MIMUS_OPENCL_LIBRARY=");
}
END_TEST

START_TEST(threads_may_load_at_once) {
    child_expect("load-in-threads", MIMUS_OK, "", "MIMUS_OPENCL_LIBRARY");
}
END_TEST

START_TEST(no_platform_names_a_package) {
    char vendors[600];
    snprintf(vendors, sizeof vendors, "OCL_ICD_VENDORS=%s", test_folder());
    child_expect("discover", MIMUS_ERR_NO_DEVICE,
                 "the OpenCL loader finds no platform: install a driver", vendors,
                 "MIMUS_OPENCL_LIBRARY=libOpenCL.so.1");
    child_expect("discover", MIMUS_ERR_NO_DEVICE,
                 "the OpenCL loader finds no platform: install a driver", SHIM("none"));
    child_expect("discover", MIMUS_ERR_NO_DEVICE, "clGetPlatformIDs: CL_OUT_OF_HOST_MEMORY (-6)",
                 SHIM("clGetPlatformIDs=-6"));
    test_folder_remove();
}
END_TEST

START_TEST(errors_have_names) {
    ck_assert_str_eq(mimus__cl_error_name(-5), "CL_OUT_OF_RESOURCES");
    ck_assert_str_eq(mimus__cl_error_name(-11), "CL_BUILD_PROGRAM_FAILURE");
    ck_assert_str_eq(mimus__cl_error_name(-54), "CL_INVALID_WORK_GROUP_SIZE");
    ck_assert_str_eq(mimus__cl_error_name(-1001), "CL_PLATFORM_NOT_FOUND_KHR");
    ck_assert_str_eq(mimus__cl_error_name(-9999), "unknown OpenCL error");
}
END_TEST

int main(int count, char **arguments) {
    if (count > 1)
        return child_main(actions, arguments[1]);
    Suite *suite = suite_create("opencl");
    TCase *all = tcase_create("opencl");
    tcase_add_test(all, a_missing_loader_names_the_package);
    tcase_add_test(all, a_library_of_the_users_is_taken_or_refused);
    tcase_add_test(all, threads_may_load_at_once);
    tcase_add_test(all, no_platform_names_a_package);
    tcase_add_test(all, errors_have_names);
    suite_add_tcase(suite, all);
    return test_run(suite);
}
