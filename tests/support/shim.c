#include "shim.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

unsigned long long shim_calls(const char *function) {
    unsigned long long (*count)(const char *) = NULL;
    void *library = dlopen(getenv("MIMUS_OPENCL_LIBRARY"), RTLD_NOW | RTLD_NOLOAD);
    void *address = library != NULL ? dlsym(library, "shim_count") : NULL;
    if (address == NULL)
        abort();
    memcpy(&count, &address, sizeof address);
    unsigned long long calls = count(function);
    dlclose(library);
    return calls;
}
