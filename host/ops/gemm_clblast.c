/* gemm_clblast - the products by CLBlast, and what it lacks by cl/bias_act.cl.
 *
 * CLBlast is opened at run time: a machine without it has one back end less, not a broken program.
 *
 * It thinks in columns; a row-major (a, b) matrix is a column-major (b, a) one, so every product is
 * asked for transposed, with its operands swapped:
 *
 *     Y' (out, B) = W' (out, in)  X' (in, B)
 *     D' (in, B)  = W  (in, out)  G' (out, B)
 *     V' (out, in) = G' (out, B)  X  (B, in)
 *
 * Offsets are 0 everywhere: a run is a window into the buffer (docs/opencl.md 11, 16). */
#include "gemm_backend.h"

#include "alloc.h"

#include <clblast_c.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------- library */

#define CLBLAST_FUNCTIONS(X)                                                                       \
    X(CLBlastSgemmWithTempBuffer)                                                                  \
    X(CLBlastSGemmTempBufferSize)                                                                  \
    X(CLBlastSgemmStridedBatched)                                                                  \
    X(CLBlastOverrideParameters)                                                                   \
    X(CLBlastClearCache)

static struct clblast_table {
#define CLBLAST_MEMBER(name) __typeof__(&name) name;
    CLBLAST_FUNCTIONS(CLBLAST_MEMBER)
#undef CLBLAST_MEMBER
} clblast;

static pthread_mutex_t library_lock = PTHREAD_MUTEX_INITIALIZER;
static void *library;
static uint32_t library_users;

/* Held open until the process ends: its caches are torn down by its own exit handlers. */
static mimus_status load_library(void) {
    const char *wanted = getenv("MIMUS_CLBLAST");
    const bool named = wanted != NULL && wanted[0] != '\0';
    const char *file = named ? wanted : "libclblast.so.1";
    if (library != NULL)
        return MIMUS_OK;
    void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL && named)
        return mimus__fail(MIMUS_ERR_UNSUPPORTED, "cannot open MIMUS_CLBLAST: %s", dlerror());
    if (handle == NULL)
        return mimus__fail(MIMUS_ERR_UNSUPPORTED, "%s not found: install libclblast1", file);
#define CLBLAST_FIND(name)                                                                         \
    *(void **)&clblast.name = dlsym(handle, #name);                                                \
    if (clblast.name == NULL) {                                                                    \
        dlclose(handle);                                                                           \
        return mimus__fail(MIMUS_ERR_UNSUPPORTED, "%s lacks %s: needs CLBlast 1.5.3 or later",     \
                           file, #name);                                                           \
    }
    CLBLAST_FUNCTIONS(CLBLAST_FIND)
#undef CLBLAST_FIND
    library = handle;
    return MIMUS_OK;
}

static mimus_status check(const mimus__device *device, CLBlastStatusCode code, const char *what) {
    if (code == CLBlastSuccess)
        return MIMUS_OK;
    /* CLBlast's codes above -1000 are OpenCL's */
    if (code > -1000)
        return mimus__device_check(device, (cl_int)code, what);
    return mimus__fail(MIMUS_ERR_DEVICE, "%s: CLBlast status %d on %s", what, (int)code,
                       mimus__device_get_info(device)->name);
}

/* ---------------------------------------------------------------------- parameters */

/* Settings for devices that CLBlast's own table misses (docs/opencl.md 13, 14). The names are in
 * the order of CLBlast's database; an override must give them all. (Its header takes them without
 * const, and only reads.) */
static const char *xgemm_names[] = {"GEMMK", "KREG", "KWG", "KWI", "MDIMA", "MDIMC", "MWG", "NDIMB",
                                    "NDIMC", "NWG",  "SA",  "SB",  "STRM",  "STRN",  "VWM", "VWN"};
static const char *direct_names[] = {"KWID", "MDIMAD", "MDIMCD", "NDIMBD", "NDIMCD",
                                     "PADA", "PADB",   "VWMD",   "VWND",   "WGD"};
static const char *routine_names[] = {"XGEMM_MIN_INDIRECT_SIZE"};

enum { XGEMM_COUNT = 16, DIRECT_COUNT = 10 };

typedef struct settings {
    const char *device; /* part of its name; NULL: any CPU */
    size_t xgemm[XGEMM_COUNT];
    size_t direct[DIRECT_COUNT]; /* all 0: as they are */
    size_t min_indirect;
} settings;

static const settings table[] = {
    {NULL, {0, 1, 64, 2, 4, 4, 64, 4, 4, 64, 0, 0, 0, 0, 8, 8}, {0}, 1},
    {"GTX 1080 Ti",
     {0, 1, 16, 2, 32, 16, 64, 16, 8, 128, 1, 1, 0, 1, 2, 8},
     {16, 8, 8, 16, 16, 1, 1, 1, 1, 32},
     1792},
};

static const settings *find_settings(const mimus__device_info *info) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        bool match =
            table[i].device == NULL ? info->cpu : strstr(info->name, table[i].device) != NULL;
        if (match)
            return &table[i];
    }
    return NULL;
}

static mimus_status override(mimus__device *device, const char *kernel, size_t count,
                             const char **names, const size_t *values) {
    CLBlastStatusCode code = clblast.CLBlastOverrideParameters(
        mimus__device_id(device), kernel, CLBlastPrecisionSingle, count, names, values);
    return check(device, code, kernel);
}

/* Once a device and process, before its first product: CLBlast drops what it has compiled. */
static mimus_status override_parameters(mimus__device *device) {
    enum { MAX_DONE = 64 };
    static cl_device_id done[MAX_DONE];
    static size_t done_count;
    mimus_status status = MIMUS_OK;
    const settings *values = find_settings(mimus__device_get_info(device));
    cl_device_id id = mimus__device_id(device);
    for (size_t i = 0; i < done_count; i++) {
        if (done[i] == id)
            return MIMUS_OK;
    }
    if (values == NULL)
        return MIMUS_OK;
    MIMUS_TRY(override(device, "Xgemm", XGEMM_COUNT, xgemm_names, values->xgemm));
    if (values->direct[0] != 0)
        MIMUS_TRY(override(device, "XgemmDirect", DIRECT_COUNT, direct_names, values->direct));
    MIMUS_TRY(override(device, "GemmRoutine", 1, routine_names, &values->min_indirect));
    if (done_count < MAX_DONE)
        done[done_count++] = id;
out:
    return status;
}

static mimus_status acquire_library(mimus__device *device) {
    pthread_mutex_lock(&library_lock);
    mimus_status status = load_library();
    if (status == MIMUS_OK)
        status = override_parameters(device);
    if (status == MIMUS_OK)
        library_users++;
    pthread_mutex_unlock(&library_lock);
    return status;
}

/* What CLBlast has compiled holds on to its context. */
static void release_library(void) {
    pthread_mutex_lock(&library_lock);
    if (--library_users == 0)
        clblast.CLBlastClearCache();
    pthread_mutex_unlock(&library_lock);
}

/* ------------------------------------------------------------------------- windows */

/* Windows into buffers by origin, made when first asked for. Open addressing over a power of two,
 * at most half full. */
typedef struct window {
    cl_mem whole; /* NULL: free */
    size_t origin;
    mimus__buffer part;
} window;

typedef struct windows {
    window *slots;
    size_t size, used;
} windows;

static window *find_window(const windows *w, cl_mem whole, size_t origin) {
    uint64_t hash = ((uint64_t)(uintptr_t)whole ^ (uint64_t)origin) * 0x9e3779b97f4a7c15u;
    for (size_t i = (size_t)(hash >> 32);; i++) {
        window *slot = &w->slots[i & (w->size - 1)];
        if (slot->whole == NULL || (slot->whole == whole && slot->origin == origin))
            return slot;
    }
}

static mimus_status grow_windows(windows *w) {
    mimus_status status = MIMUS_OK;
    windows larger = {.size = w->size > 0 ? 2 * w->size : 64, .used = w->used};
    MIMUS_TRY(mimus__alloc(&larger.slots, larger.size, sizeof *larger.slots));
    for (size_t i = 0; i < w->size; i++) {
        if (w->slots[i].whole != NULL)
            *find_window(&larger, w->slots[i].whole, w->slots[i].origin) = w->slots[i];
    }
    free(w->slots);
    *w = larger;
out:
    return status;
}

static void free_windows(windows *w) {
    for (size_t i = 0; i < w->size; i++)
        mimus__buffer_free(&w->slots[i].part);
    free(w->slots);
    *w = (windows){0};
}

/* `*out` is run `run` of the matrix, to the end of its buffer. */
static mimus_status run_window(windows *w, const mimus__matrix *matrix, uint32_t run, cl_mem *out) {
    mimus_status status = MIMUS_OK;
    const mimus__buffer *whole = matrix->buffer;
    size_t origin = (matrix->offset + run * matrix->stride) * sizeof(float);
    *out = whole->memory;
    if (origin == 0)
        return MIMUS_OK;
    if (2 * (w->used + 1) > w->size)
        MIMUS_TRY(grow_windows(w));
    window *slot = find_window(w, whole->memory, origin);
    if (slot->whole == NULL) {
        MIMUS_TRY(mimus__buffer_part(&slot->part, whole, origin, whole->bytes - origin));
        slot->whole = whole->memory;
        slot->origin = origin;
        w->used++;
    }
    *out = slot->part.memory;
out:
    return status;
}

/* ------------------------------------------------------------------------- opening */

/* Multiples that spare CLBlast its padded copies, whatever its tile; bias_act.cl wants them too. */
enum { PAD = 64, BIAS_PARTS = 64 };

/* The bytes of temporaries that batched products may have in flight: CLBlast allocates them call by
 * call, and drivers keep them until the queue gets there (docs/opencl.md 17). */
static const size_t temporaries_limit = (size_t)256 << 20;

typedef struct clblast_backend {
    mimus__gemm_backend base;
    bool has_library;
    bool batched;
    size_t temporaries; /* bytes, since the last wait */
    windows windows;
    mimus__buffer temporary; /* of single products */
    mimus__buffer partial;   /* (R, BIAS_PARTS, out) sums of G's rows */
    mimus__program program;
    mimus__kernel forward, backward, sum, finish;
} clblast_backend;

/* One product C (m, n) = A (m, k) B (k, n), column-major. */
typedef struct product {
    CLBlastTranspose a_transpose, b_transpose;
    size_t m, n, k;
    const mimus__matrix *a, *b, *c;
    size_t a_ld, b_ld;
} product;

enum { FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT, PRODUCTS };

static product shape_product(int which, const mimus__gemm_layer *layer, uint32_t rows) {
    const CLBlastTranspose no = CLBlastTransposeNo, yes = CLBlastTransposeYes;
    size_t in = layer->in, out = layer->out;
    switch (which) {
    case FORWARD: /* W', X' */
        return (product){.a_transpose = no,
                         .b_transpose = no,
                         .m = out,
                         .n = rows,
                         .k = in,
                         .a_ld = out,
                         .b_ld = in};
    case INPUT_GRADIENT: /* W, G' */
        return (product){.a_transpose = yes,
                         .b_transpose = no,
                         .m = in,
                         .n = rows,
                         .k = out,
                         .a_ld = out,
                         .b_ld = out};
    default: /* G', X */
        return (product){.a_transpose = no,
                         .b_transpose = yes,
                         .m = out,
                         .n = in,
                         .k = rows,
                         .a_ld = out,
                         .b_ld = in};
    }
}

/* On CPU runtimes it takes 2 to 30 times as long as our tile, and 5 to 30 s to compile. */
static const char *clblast_unsuited(const mimus__device *device) {
    if (mimus__geometry_of(device).local == 1)
        return "made for GPUs; ask for it by name";
    pthread_mutex_lock(&library_lock);
    mimus_status status = load_library();
    pthread_mutex_unlock(&library_lock);
    return status == MIMUS_OK ? NULL : mimus_last_error();
}

static uint32_t clblast_variants(const mimus__device *device, const mimus__gemm_problem *problem) {
    (void)device;
    for (uint32_t i = 0; i < problem->count; i++) {
        if (problem->layers[i].runs > 1)
            return 2; /* one by one, batched */
    }
    return 1;
}

/* CLBlast counts elements in int. */
static mimus_status check_sizes(const mimus__gemm_layer *layer, uint32_t rows) {
    uint64_t widest = layer->in > layer->out ? layer->in : layer->out;
    uint64_t tallest = rows > widest ? rows : widest;
    if (tallest * widest > INT32_MAX / layer->runs)
        return mimus__fail(MIMUS_ERR_UNSUPPORTED,
                           "%u runs of %u rows x %u are past CLBlast's 2^31 elements",
                           (unsigned)layer->runs, (unsigned)rows, (unsigned)widest);
    return MIMUS_OK;
}

static mimus_status temporary_bytes(const clblast_backend *self, const product *p, size_t *out) {
    cl_command_queue queue = mimus__device_queue(self->base.device);
    CLBlastStatusCode code = clblast.CLBlastSGemmTempBufferSize(
        CLBlastLayoutColMajor, p->a_transpose, p->b_transpose, p->m, p->n, p->k, 0, p->a_ld, 0,
        p->b_ld, 0, p->m, &queue, out);
    return check(self->base.device, code, "CLBlastSGemmTempBufferSize");
}

static mimus_status make_buffers(clblast_backend *self, const mimus__gemm_problem *problem) {
    mimus_status status = MIMUS_OK;
    size_t largest = 0, sums = 0;
    uint32_t rows = mimus__round_up(problem->rows, PAD);
    for (uint32_t i = 0; i < problem->count; i++) {
        mimus__gemm_layer layer = mimus__gemm_padded(&self->base, problem->layers[i]);
        size_t floats = (size_t)layer.runs * BIAS_PARTS * layer.out;
        sums = floats > sums ? floats : sums;
        MIMUS_TRY(check_sizes(&layer, rows));
        for (int which = 0; which < PRODUCTS; which++) {
            product p = shape_product(which, &layer, rows);
            size_t bytes;
            MIMUS_TRY(temporary_bytes(self, &p, &bytes));
            largest = bytes > largest ? bytes : largest;
        }
    }
    MIMUS_TRY(
        mimus__buffer_new(&self->temporary, self->base.device, largest, "CLBlast's temporaries"));
    MIMUS_TRY(mimus__buffer_new(&self->partial, self->base.device, sums * sizeof(float),
                                "partial sums of bias gradients"));
out:
    return status;
}

static mimus_status build_program(clblast_backend *self) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__program_build(&self->program, self->base.device, "bias_act.cl", NULL));
    MIMUS_TRY(mimus__kernel_new(&self->forward, &self->program, "bias_act_forward"));
    MIMUS_TRY(mimus__kernel_new(&self->backward, &self->program, "bias_act_backward"));
    MIMUS_TRY(mimus__kernel_new(&self->sum, &self->program, "bias_act_sum"));
    MIMUS_TRY(mimus__kernel_new(&self->finish, &self->program, "bias_act_finish"));
out:
    return status;
}

static void clblast_close(mimus__gemm_backend *backend) {
    clblast_backend *self = (clblast_backend *)backend;
    if (self == NULL)
        return;
    free_windows(&self->windows);
    mimus__buffer_free(&self->temporary);
    mimus__buffer_free(&self->partial);
    mimus__kernel_free(&self->forward);
    mimus__kernel_free(&self->backward);
    mimus__kernel_free(&self->sum);
    mimus__kernel_free(&self->finish);
    mimus__program_free(&self->program);
    if (self->has_library)
        release_library();
    free(self);
}

static mimus_status clblast_open(mimus__gemm_backend **out, mimus__device *device,
                                 const mimus__gemm_problem *problem, uint32_t variant) {
    mimus_status status = MIMUS_OK;
    clblast_backend *self = NULL;
    *out = NULL;
    MIMUS_TRY(mimus__alloc(&self, 1, sizeof *self));
    self->batched = variant == 1;
    self->base = (mimus__gemm_backend){
        .device = device, .width_pad = PAD, .row_pad = PAD, .splits = 1, .batches = self->batched};
    snprintf(self->base.parameters, sizeof self->base.parameters, "%s",
             self->batched ? "batched" : "one by one");
    MIMUS_TRY(acquire_library(device));
    self->has_library = true;
    MIMUS_TRY(build_program(self));
    MIMUS_TRY(make_buffers(self, problem));
    *out = &self->base;
    self = NULL;
out:
    if (self != NULL)
        clblast_close(&self->base);
    return status;
}

/* ------------------------------------------------------------------------ products */

static mimus_status run_each(clblast_backend *self, const product *p, uint32_t runs) {
    mimus_status status = MIMUS_OK;
    cl_command_queue queue = mimus__device_queue(self->base.device);
    for (uint32_t run = 0; run < runs; run++) {
        cl_mem a, b, c;
        MIMUS_TRY(run_window(&self->windows, p->a, run, &a));
        MIMUS_TRY(run_window(&self->windows, p->b, run, &b));
        MIMUS_TRY(run_window(&self->windows, p->c, run, &c));
        CLBlastStatusCode code = clblast.CLBlastSgemmWithTempBuffer(
            CLBlastLayoutColMajor, p->a_transpose, p->b_transpose, p->m, p->n, p->k, 1.0f, a, 0,
            p->a_ld, b, 0, p->b_ld, 0.0f, c, 0, p->m, &queue, NULL, self->temporary.memory);
        MIMUS_TRY(check(self->base.device, code, "CLBlastSgemmWithTempBuffer"));
        mimus__device_count_launch(self->base.device);
    }
out:
    return status;
}

/* Only matrices that lie run behind run: with any other stride the library may be silently wrong
 * (docs/opencl.md 11). */
static bool can_batch(const clblast_backend *self, const product *p, uint32_t runs) {
    return self->batched && runs > 1 && p->a->stride == p->m * p->k &&
           p->b->stride == p->k * p->n && p->c->stride == p->m * p->n;
}

static mimus_status run_batched(clblast_backend *self, const product *p, uint32_t runs) {
    mimus_status status = MIMUS_OK;
    cl_command_queue queue = mimus__device_queue(self->base.device);
    size_t bytes = (p->a->stride + p->b->stride + p->c->stride) * runs * sizeof(float);
    cl_mem a, b, c;
    if (self->temporaries > 0 && self->temporaries + bytes > temporaries_limit) {
        MIMUS_TRY(mimus__device_finish(self->base.device));
        self->temporaries = 0;
    }
    self->temporaries += bytes;
    MIMUS_TRY(run_window(&self->windows, p->a, 0, &a));
    MIMUS_TRY(run_window(&self->windows, p->b, 0, &b));
    MIMUS_TRY(run_window(&self->windows, p->c, 0, &c));
    CLBlastStatusCode code = clblast.CLBlastSgemmStridedBatched(
        CLBlastLayoutColMajor, p->a_transpose, p->b_transpose, p->m, p->n, p->k, 1.0f, a, 0,
        p->a_ld, p->a->stride, b, 0, p->b_ld, p->b->stride, 0.0f, c, 0, p->m, p->c->stride, runs,
        &queue, NULL);
    MIMUS_TRY(check(self->base.device, code, "CLBlastSgemmStridedBatched"));
    mimus__device_count_launch(self->base.device);
out:
    return status;
}

static mimus_status run_product(clblast_backend *self, int which, const mimus__gemm_layer *layer,
                                uint32_t rows, const mimus__matrix *a, const mimus__matrix *b,
                                const mimus__matrix *c) {
    product p = shape_product(which, layer, rows);
    p.a = a;
    p.b = b;
    p.c = c;
    return can_batch(self, &p, layer->runs) ? run_batched(self, &p, layer->runs)
                                            : run_each(self, &p, layer->runs);
}

/* A work-item for four columns of a row. */
static mimus__grid element_grid(uint32_t width, uint32_t rows, uint32_t runs) {
    return (mimus__grid){{width / 4, rows, runs}, {16, 4, 1}};
}

static mimus_status clblast_forward(mimus__gemm_backend *backend,
                                    const mimus__gemm_forward_call *call) {
    mimus_status status = MIMUS_OK;
    clblast_backend *self = (clblast_backend *)backend;
    const mimus__gemm_layer *layer = &call->layer;
    const mimus__matrix *pre = call->pre != NULL ? call->pre : &call->y;
    MIMUS_TRY(run_product(self, FORWARD, layer, call->rows, &call->weight, &call->x, &call->y));
    MIMUS_TRY(mimus__launch(&self->forward, element_grid(layer->out, call->rows, layer->runs),
                            MIMUS_ARG_U32(layer->out), MIMUS_ARGS_MATRIX(&call->bias),
                            MIMUS_ARG_U32(call->activation), MIMUS_ARGS_MATRIX(&call->y),
                            MIMUS_ARG_U32(call->pre != NULL), MIMUS_ARGS_MATRIX(pre)));
out:
    return status;
}

static mimus_status clblast_input_gradient(mimus__gemm_backend *backend,
                                           const mimus__gemm_input_call *call) {
    mimus_status status = MIMUS_OK;
    clblast_backend *self = (clblast_backend *)backend;
    const mimus__gemm_layer *layer = &call->layer;
    MIMUS_TRY(
        run_product(self, INPUT_GRADIENT, layer, call->rows, &call->weight, &call->g, &call->d));
    if (call->activation != MIMUS__IDENTITY)
        MIMUS_TRY(mimus__launch(&self->backward, element_grid(layer->in, call->rows, layer->runs),
                                MIMUS_ARG_U32(layer->in), MIMUS_ARG_U32(call->activation),
                                MIMUS_ARG_U32(call->saved_is_pre), MIMUS_ARGS_MATRIX(&call->saved),
                                MIMUS_ARGS_MATRIX(&call->d)));
out:
    return status;
}

static mimus_status clblast_weight_gradient(mimus__gemm_backend *backend,
                                            const mimus__gemm_weight_call *call) {
    mimus_status status = MIMUS_OK;
    clblast_backend *self = (clblast_backend *)backend;
    const mimus__gemm_layer *layer = &call->layer;
    mimus__grid finish = {{layer->out, layer->runs, 1}, {PAD, 1, 1}};
    MIMUS_TRY(
        run_product(self, WEIGHT_GRADIENT, layer, call->rows, &call->g, &call->x, &call->weight));
    MIMUS_TRY(mimus__launch(&self->sum, element_grid(layer->out, BIAS_PARTS, layer->runs),
                            MIMUS_ARG_U32(call->rows), MIMUS_ARG_U32(layer->out),
                            MIMUS_ARGS_MATRIX(&call->g), MIMUS_ARG_BUFFER(&self->partial)));
    MIMUS_TRY(mimus__launch(&self->finish, finish, MIMUS_ARG_U32(layer->out),
                            MIMUS_ARG_U32(BIAS_PARTS), MIMUS_ARG_BUFFER(&self->partial),
                            MIMUS_ARGS_MATRIX(&call->bias)));
out:
    return status;
}

const mimus__gemm_type mimus__gemm_clblast = {
    .kind = MIMUS__GEMM_CLBLAST,
    .name = "clblast",
    .unsuited = clblast_unsuited,
    .variants = clblast_variants,
    .open = clblast_open,
    .close = clblast_close,
    .forward = clblast_forward,
    .input_gradient = clblast_input_gradient,
    .weight_gradient = clblast_weight_gradient,
};
