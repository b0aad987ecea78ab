#include "discovery.h"

#include "alloc.h"
#include "text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------- what there is */

/* Find `part` in `text`, whatever the case. */
static bool contains(const char *text, const char *part) {
    size_t length = strlen(part);
    for (; *text != '\0'; text++) {
        size_t i = 0;
        while (i < length && tolower((unsigned char)text[i]) == tolower((unsigned char)part[i]))
            i++;
        if (i == length)
            return true;
    }
    return false;
}

/* Names come padded with blanks from some drivers. */
static void trim(char *text) {
    size_t lead = strspn(text, " ");
    size_t length = strlen(text + lead);
    while (length > 0 && text[lead + length - 1] == ' ')
        length--;
    memmove(text, text + lead, length);
    text[length] = '\0';
}

enum { TEXT_BYTES = 256 }; /* of every text in the info structures */

/* Texts of any length; what does not fit is cut. */
static cl_int platform_text(cl_platform_id id, cl_platform_info what, char *out) {
    char text[1024] = "";
    cl_int code = mimus__cl.clGetPlatformInfo(id, what, sizeof text - 1, text, NULL);
    snprintf(out, TEXT_BYTES, "%.*s", TEXT_BYTES - 1, text);
    trim(out);
    return code;
}

static cl_int device_text(cl_device_id id, cl_device_info what, char *out) {
    char text[1024] = "";
    cl_int code = mimus__cl.clGetDeviceInfo(id, what, sizeof text - 1, text, NULL);
    snprintf(out, TEXT_BYTES, "%.*s", TEXT_BYTES - 1, text);
    trim(out);
    return code;
}

static cl_int device_u32(cl_device_id id, cl_device_info what, uint32_t *out) {
    cl_uint value = 0;
    cl_int code = mimus__cl.clGetDeviceInfo(id, what, sizeof value, &value, NULL);
    *out = value;
    return code;
}

static cl_int device_u64(cl_device_id id, cl_device_info what, uint64_t *out) {
    cl_ulong value = 0;
    cl_int code = mimus__cl.clGetDeviceInfo(id, what, sizeof value, &value, NULL);
    *out = value;
    return code;
}

static bool has_extension(const char *list, const char *name) {
    size_t length = strlen(name);
    for (const char *at = list; (at = strstr(at, name)) != NULL; at += length) {
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    }
    return false;
}

static cl_int device_extensions(cl_device_id id, mimus__device_info *info) {
    size_t bytes = 0;
    cl_int code = mimus__cl.clGetDeviceInfo(id, CL_DEVICE_EXTENSIONS, 0, NULL, &bytes);
    if (code != CL_SUCCESS)
        return code;
    char *list = calloc(bytes + 1, 1);
    if (list == NULL)
        return CL_OUT_OF_HOST_MEMORY;
    code = mimus__cl.clGetDeviceInfo(id, CL_DEVICE_EXTENSIONS, bytes, list, NULL);
    info->fp16 = has_extension(list, "cl_khr_fp16");
    info->fp64 = has_extension(list, "cl_khr_fp64");
    free(list);
    return code;
}

/* A rasteriser that runs on the CPU may call itself a GPU; a tool such as Oclgrind calls itself
 * everything at once. */
static cl_int device_type(cl_device_id id, mimus__device_info *info) {
    cl_device_type type = 0;
    cl_int code = mimus__cl.clGetDeviceInfo(id, CL_DEVICE_TYPE, sizeof type, &type, NULL);
    info->cpu = (type & CL_DEVICE_TYPE_CPU) != 0 || contains(info->name, "llvmpipe") ||
                contains(info->name, "softpipe") || contains(info->name, "swrast");
    info->gpu = !info->cpu && (type & CL_DEVICE_TYPE_GPU) != 0;
    return code;
}

static cl_int device_sizes(cl_device_id id, mimus__device_info *info) {
    size_t group = 0;
    uint32_t align_bits = 0;
    cl_int code = device_u64(id, CL_DEVICE_GLOBAL_MEM_SIZE, &info->memory);
    if (code == CL_SUCCESS)
        code = device_u64(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, &info->largest);
    if (code == CL_SUCCESS)
        code = device_u64(id, CL_DEVICE_LOCAL_MEM_SIZE, &info->local_memory);
    if (code == CL_SUCCESS)
        code = device_u32(id, CL_DEVICE_MAX_COMPUTE_UNITS, &info->compute_units);
    if (code == CL_SUCCESS)
        code = device_u32(id, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, &info->vector_width);
    if (code == CL_SUCCESS)
        code = device_u32(id, CL_DEVICE_MEM_BASE_ADDR_ALIGN, &align_bits);
    if (code == CL_SUCCESS)
        code = mimus__cl.clGetDeviceInfo(id, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof group, &group,
                                         NULL);
    if (info->largest > info->memory) /* seen in the field (opencl.md 1) */
        info->largest = info->memory;
    if (info->vector_width == 0)
        info->vector_width = 1;
    info->base_align = align_bits >= 8 ? align_bits / 8 : 1;
    info->max_group = group > UINT32_MAX ? UINT32_MAX : (uint32_t)group;
    return code;
}

/* Mesa's Clover stops at OpenCL 1.1; embedded profiles may lack a compiler. */
static cl_int device_usable(cl_device_id id, mimus__device_info *info) {
    cl_bool available = CL_FALSE, compiler = CL_FALSE;
    int major = 0, minor = 0;
    cl_int code =
        mimus__cl.clGetDeviceInfo(id, CL_DEVICE_AVAILABLE, sizeof available, &available, NULL);
    if (code == CL_SUCCESS)
        code = mimus__cl.clGetDeviceInfo(id, CL_DEVICE_COMPILER_AVAILABLE, sizeof compiler,
                                         &compiler, NULL);
    if (sscanf(info->version, "OpenCL %d.%d", &major, &minor) != 2 || major < 1 ||
        (major == 1 && minor < 2))
        info->unusable = "does not speak OpenCL 1.2";
    else if (!available)
        info->unusable = "is not available";
    else if (!compiler)
        info->unusable = "has no compiler";
    return code;
}

static cl_int device_describe(cl_device_id id, mimus__device_info *info) {
    cl_int code = device_text(id, CL_DEVICE_NAME, info->name);
    if (code == CL_SUCCESS)
        code = device_text(id, CL_DEVICE_VENDOR, info->vendor);
    if (code == CL_SUCCESS)
        code = device_text(id, CL_DRIVER_VERSION, info->driver);
    if (code == CL_SUCCESS)
        code = device_text(id, CL_DEVICE_VERSION, info->version);
    if (code == CL_SUCCESS)
        code = device_type(id, info);
    if (code == CL_SUCCESS)
        code = device_sizes(id, info);
    if (code == CL_SUCCESS)
        code = device_extensions(id, info);
    if (code == CL_SUCCESS)
        code = device_usable(id, info);
    return code;
}

static void platform_fails(mimus__found_platform *platform, const char *call, cl_int code) {
    snprintf(platform->error, sizeof platform->error, "%s: %s (%d)", call,
             mimus__cl_error_name(code), (int)code);
}

static mimus_status add_device(mimus__discovery *out, size_t platform, size_t index,
                               cl_device_id id) {
    mimus__found_device device = {.platform = out->platforms[platform].id, .id = id};
    device.info.platform = (uint32_t)platform;
    device.info.index = (uint32_t)index;
    memcpy(device.info.platform_name, out->platforms[platform].name, TEXT_BYTES);
    cl_int code = device_describe(id, &device.info);
    if (code != CL_SUCCESS) {
        platform_fails(&out->platforms[platform], "clGetDeviceInfo", code);
        return MIMUS_OK;
    }
    mimus_status status = mimus__grow(&out->devices, &out->device_capacity, out->device_count + 1,
                                      sizeof *out->devices);
    if (status == MIMUS_OK) {
        out->devices[out->device_count++] = device;
        out->platforms[platform].devices++;
    }
    return status;
}

static mimus_status add_devices(mimus__discovery *out, size_t platform) {
    mimus_status status = MIMUS_OK;
    mimus__found_platform *found = &out->platforms[platform];
    cl_device_id *ids = NULL;
    cl_uint count = 0;
    cl_int code = mimus__cl.clGetDeviceIDs(found->id, CL_DEVICE_TYPE_ALL, 0, NULL, &count);
    if (code == CL_DEVICE_NOT_FOUND || (code == CL_SUCCESS && count == 0))
        return MIMUS_OK;
    if (code == CL_SUCCESS) {
        MIMUS_TRY(mimus__alloc(&ids, count, sizeof *ids));
        code = mimus__cl.clGetDeviceIDs(found->id, CL_DEVICE_TYPE_ALL, count, ids, NULL);
    }
    if (code != CL_SUCCESS) {
        platform_fails(found, "clGetDeviceIDs", code);
        goto out;
    }
    for (cl_uint i = 0; i < count; i++)
        MIMUS_TRY(add_device(out, platform, i, ids[i]));
out:
    free(ids);
    return status;
}

static mimus_status add_platform(mimus__discovery *out, size_t index, cl_platform_id id) {
    mimus__found_platform *found = &out->platforms[index];
    found->id = id;
    cl_int code = platform_text(id, CL_PLATFORM_NAME, found->name);
    if (code == CL_SUCCESS)
        code = platform_text(id, CL_PLATFORM_VENDOR, found->vendor);
    if (code == CL_SUCCESS)
        code = platform_text(id, CL_PLATFORM_VERSION, found->version);
    if (code != CL_SUCCESS) {
        platform_fails(found, "clGetPlatformInfo", code);
        return MIMUS_OK;
    }
    return add_devices(out, index);
}

mimus_status mimus__discovery_run(mimus__discovery *out) {
    mimus_status status = MIMUS_OK;
    cl_platform_id *ids = NULL;
    cl_uint count = 0;
    *out = (mimus__discovery){0};
    MIMUS_TRY(mimus__opencl_load());
    cl_int code = mimus__cl.clGetPlatformIDs(0, NULL, &count);
    if (code == -1001 || (code == CL_SUCCESS && count == 0)) { /* CL_PLATFORM_NOT_FOUND_KHR */
        status = mimus__fail(MIMUS_ERR_NO_DEVICE, "the OpenCL loader finds no platform: install a "
                                                  "driver, the GPU's own or pocl-opencl-icd "
                                                  "(Debian, Ubuntu) for the CPU");
        goto out;
    }
    if (code == CL_SUCCESS) {
        MIMUS_TRY(mimus__alloc(&ids, count, sizeof *ids));
        code = mimus__cl.clGetPlatformIDs(count, ids, NULL);
    }
    if (code != CL_SUCCESS) {
        status = mimus__fail(MIMUS_ERR_NO_DEVICE, "clGetPlatformIDs: %s (%d)",
                             mimus__cl_error_name(code), (int)code);
        goto out;
    }
    MIMUS_TRY(mimus__alloc(&out->platforms, count, sizeof *out->platforms));
    out->platform_count = count;
    for (cl_uint i = 0; i < count; i++)
        MIMUS_TRY(add_platform(out, i, ids[i]));
out:
    free(ids);
    return status;
}

void mimus__discovery_clear(mimus__discovery *found) {
    free(found->platforms);
    free(found->devices);
    *found = (mimus__discovery){0};
}

/* -------------------------------------------------------------------- choice */

static bool is_cpu(const mimus__found_device *device, const char *text) {
    (void)text;
    return device->info.cpu && device->info.unusable == NULL;
}

static bool is_gpu(const mimus__found_device *device, const char *text) {
    (void)text;
    return device->info.gpu && device->info.unusable == NULL;
}

static bool is_any(const mimus__found_device *device, const char *text) {
    (void)text;
    return device->info.unusable == NULL;
}

static bool is_numbered(const mimus__found_device *device, const char *text) {
    char id[32];
    snprintf(id, sizeof id, "%u:%u", (unsigned)device->info.platform, (unsigned)device->info.index);
    return strcmp(id, text) == 0;
}

static bool is_named(const mimus__found_device *device, const char *text) {
    return contains(device->info.name, text);
}

static bool is_on_platform(const mimus__found_device *device, const char *text) {
    return contains(device->info.platform_name, text);
}

static bool find(const mimus__discovery *found,
                 bool (*matches)(const mimus__found_device *, const char *), const char *text,
                 size_t *chosen) {
    for (size_t i = 0; i < found->device_count; i++) {
        if (matches(&found->devices[i], text)) {
            *chosen = i;
            return true;
        }
    }
    return false;
}

static bool find_selected(const mimus__discovery *found, const char *selector, size_t *chosen) {
    if (selector[0] == '\0')
        return find(found, is_gpu, NULL, chosen) || find(found, is_cpu, NULL, chosen) ||
               find(found, is_any, NULL, chosen);
    if (strcmp(selector, "gpu") == 0)
        return find(found, is_gpu, NULL, chosen);
    if (strcmp(selector, "cpu") == 0)
        return find(found, is_cpu, NULL, chosen);
    return find(found, is_numbered, selector, chosen) || find(found, is_named, selector, chosen) ||
           find(found, is_on_platform, selector, chosen);
}

enum { LIST_BYTES = 768 };

static void append(char *list, const char *line) {
    size_t length = strlen(list);
    snprintf(list + length, LIST_BYTES - length, "%s%s", length > 0 ? ", " : "", line);
}

/* "0:0 GeForce GTX 1080 Ti (gpu), 1:0 pthread-AMD EPYC (cpu), platform Clover (empty)" */
static void list_all(const mimus__discovery *found, char *list) {
    char line[544];
    list[0] = '\0';
    for (size_t i = 0; i < found->device_count; i++) {
        const mimus__device_info *info = &found->devices[i].info;
        snprintf(line, sizeof line, "%u:%u %s (%s%s%s)", (unsigned)info->platform,
                 (unsigned)info->index, info->name, mimus__device_type_text(info),
                 info->unusable != NULL ? ", " : "", info->unusable != NULL ? info->unusable : "");
        append(list, line);
    }
    for (size_t i = 0; i < found->platform_count; i++) {
        const mimus__found_platform *platform = &found->platforms[i];
        if (platform->devices > 0 && platform->error[0] == '\0')
            continue;
        snprintf(line, sizeof line, "platform %u %s (%s)", (unsigned)i, platform->name,
                 platform->error[0] != '\0' ? platform->error : "empty");
        append(list, line);
    }
}

/* Why a driver may have no device. */
static const char *advice(const char *list) {
    if (strstr(list, "Portable Computing Language") == NULL)
        return "";
    if (getenv("POCL_DEVICES") != NULL)
        return " (PoCL has only the devices that POCL_DEVICES names, and it names none that there "
               "is: unset it, or set it to \"pthread\")";
    return " (it has no device where it cannot write to its cache: set POCL_CACHE_DIR to a folder "
           "that it may write to)";
}

mimus_status mimus__discovery_choose(const mimus__discovery *found, const char *selector,
                                     size_t *chosen) {
    char list[LIST_BYTES];
    const char *from = "";
    if (selector == NULL || selector[0] == '\0') {
        selector = getenv("MIMUS_DEVICE");
        from = " (MIMUS_DEVICE)";
    }
    if (selector == NULL)
        selector = "";
    if (find_selected(found, selector, chosen))
        return MIMUS_OK;
    list_all(found, list);
    if (selector[0] == '\0')
        return mimus__fail(MIMUS_ERR_NO_DEVICE, "no usable OpenCL device; there are: %s%s", list,
                           advice(list));
    return mimus__fail(MIMUS_ERR_NO_DEVICE, "no OpenCL device matches \"%s\"%s; there are: %s",
                       selector, from, list);
}

/* ---------------------------------------------------------------------- list */

const char *mimus__device_type_text(const mimus__device_info *info) {
    return info->gpu ? "gpu" : info->cpu ? "cpu" : "accelerator";
}

/* jansson takes UTF-8 only; a driver's text may be anything. */
static json_t *text_value(const char *text) {
    json_t *value = json_string(text);
    if (value != NULL)
        return value;
    char ascii[256];
    snprintf(ascii, sizeof ascii, "%s", text);
    for (char *at = ascii; *at != '\0'; at++) {
        if ((unsigned char)*at >= 0x80)
            *at = '?';
    }
    return json_string(ascii);
}

static mimus_status describe_platform(json_t *list, const mimus__found_platform *platform,
                                      size_t index) {
    mimus_status status = MIMUS_OK;
    json_t *row = json_object();
    MIMUS_TRY(mimus__json_set(row, "index", json_integer((json_int_t)index)));
    MIMUS_TRY(mimus__json_set(row, "name", text_value(platform->name)));
    MIMUS_TRY(mimus__json_set(row, "vendor", text_value(platform->vendor)));
    MIMUS_TRY(mimus__json_set(row, "version", text_value(platform->version)));
    if (platform->error[0] != '\0')
        MIMUS_TRY(mimus__json_set(row, "error", text_value(platform->error)));
    MIMUS_TRY(mimus__json_append(list, json_incref(row)));
out:
    json_decref(row);
    return status;
}

static mimus_status describe_sizes(json_t *row, const mimus__device_info *info) {
    const struct {
        const char *key;
        uint64_t value;
    } sizes[] = {
        {"memory", info->memory},
        {"largest_buffer", info->largest},
        {"compute_units", info->compute_units},
        {"vector_width", info->vector_width},
        {"local_memory", info->local_memory},
        {"max_group", info->max_group},
    };
    mimus_status status = MIMUS_OK;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        MIMUS_TRY(mimus__json_set(row, sizes[i].key, json_integer((json_int_t)sizes[i].value)));
out:
    return status;
}

mimus_status mimus__device_describe(json_t **out, const mimus__device_info *info) {
    mimus_status status = MIMUS_OK;
    json_t *row = json_object();
    char id[32];
    *out = NULL;
    snprintf(id, sizeof id, "%u:%u", (unsigned)info->platform, (unsigned)info->index);
    MIMUS_TRY(mimus__json_set(row, "id", json_string(id)));
    MIMUS_TRY(mimus__json_set(row, "platform", json_integer(info->platform)));
    MIMUS_TRY(mimus__json_set(row, "index", json_integer(info->index)));
    MIMUS_TRY(mimus__json_set(row, "name", text_value(info->name)));
    MIMUS_TRY(mimus__json_set(row, "vendor", text_value(info->vendor)));
    MIMUS_TRY(mimus__json_set(row, "driver", text_value(info->driver)));
    MIMUS_TRY(mimus__json_set(row, "version", text_value(info->version)));
    MIMUS_TRY(mimus__json_set(row, "type", json_string(mimus__device_type_text(info))));
    MIMUS_TRY(describe_sizes(row, info));
    MIMUS_TRY(mimus__json_set(row, "fp16", json_boolean(info->fp16)));
    MIMUS_TRY(mimus__json_set(row, "fp64", json_boolean(info->fp64)));
    if (info->unusable != NULL)
        MIMUS_TRY(mimus__json_set(row, "unusable", json_string(info->unusable)));
    *out = json_incref(row);
out:
    json_decref(row);
    return status;
}

static mimus_status list_device(json_t *list, const mimus__device_info *info, bool chosen) {
    mimus_status status = MIMUS_OK;
    json_t *row = NULL;
    MIMUS_TRY(mimus__device_describe(&row, info));
    MIMUS_TRY(mimus__json_set(row, "chosen", json_boolean(chosen)));
    MIMUS_TRY(mimus__json_append(list, json_incref(row)));
out:
    json_decref(row);
    return status;
}

mimus_status mimus__device_list(json_t **out, const char *selector) {
    mimus_status status = MIMUS_OK;
    mimus__discovery found = {0};
    json_t *root = NULL, *platforms = NULL, *devices = NULL;
    size_t chosen;
    *out = NULL;
    MIMUS_TRY(mimus__discovery_run(&found));
    if (mimus__discovery_choose(&found, selector, &chosen) != MIMUS_OK)
        chosen = found.device_count;
    platforms = json_array();
    devices = json_array();
    for (size_t i = 0; i < found.platform_count; i++)
        MIMUS_TRY(describe_platform(platforms, &found.platforms[i], i));
    for (size_t i = 0; i < found.device_count; i++)
        MIMUS_TRY(list_device(devices, &found.devices[i].info, i == chosen));
    root = json_object();
    MIMUS_TRY(mimus__json_set(root, "platforms", json_incref(platforms)));
    MIMUS_TRY(mimus__json_set(root, "devices", json_incref(devices)));
    MIMUS_TRY(mimus__json_set(root, "chosen",
                              chosen < found.device_count ? json_integer((json_int_t)chosen)
                                                          : json_null()));
    *out = json_incref(root);
out:
    json_decref(root);
    json_decref(platforms);
    json_decref(devices);
    mimus__discovery_clear(&found);
    return status;
}
