/* Reading HDF5 files: the layouts, element types and options, and what is refused. */
#include "capture.h"
#include "h5_file_maker.h"
#include "support.h"

#include "apart.h"
#include "file.h"
#include "gym_space.h"
#include "h5_reader.h"
#include "heads.h"
#include "sink.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const *options_of(const char *const *options) {
    return options;
}
#define OPTIONS(...) options_of((const char *const[]){__VA_ARGS__, NULL})

/* In this process, where sanitizers see it; or as everybody reads, in one apart. */
static bool apart = false;

static mimus_status read_with(test_capture *capture, const char *path, const char *const *options,
                              const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    const mimus_source source = {.format = "hdf5", .options = options};
    char *file = NULL;
    if (apart)
        return mimus__sink_read(&capture->sink, path, &source, watch);
    MIMUS_TRY(mimus__reader_check(&mimus__h5_reader, options));
    MIMUS_TRY(mimus__reader_file(&file, path));
    MIMUS_TRY(mimus__h5_read_here(file, options, &capture->sink, watch));
out:
    free(file);
    return status;
}

static test_capture must_read(const char *path, const char *const *options) {
    test_capture capture = test_capture_new();
    test_ok(read_with(&capture, path, options, NULL));
    return capture;
}

static void must_fail(const char *path, const char *const *options, mimus_status expected,
                      const char *part) {
    test_capture capture = test_capture_new();
    test_fails(read_with(&capture, path, options, NULL), expected, part);
    ck_assert_msg(strncmp(mimus_last_error(), path, strlen(path)) == 0, "%s does not begin with %s",
                  mimus_last_error(), path);
    test_capture_free(&capture);
}

static void check_ends(const test_capture *c, const char *ends) {
    ck_assert_uint_eq(c->samples, strlen(ends));
    for (size_t i = 0; i < c->samples; i++)
        ck_assert_msg(c->ends[i] == (ends[i] == '|'), "row %zu of %s", i, ends);
}

/* Doubles first, first + 1, ... in a buffer that lasts until the fourth call from here. */
static const double *count_from(double first, size_t count) {
    static double buffers[4][4096];
    static unsigned turn;
    double *values = buffers[turn++ % 4];
    ck_assert_uint_le(count, 4096);
    for (size_t i = 0; i < count; i++)
        values[i] = first + (double)i;
    return values;
}

/* ----------------------------------------------------------------- layouts */

/* Twelve episodes: number e has e + 1 samples, whose senses are 100 e + row, and one row more. */
static void add_minari(hid_t file, const char *observations) {
    for (int e = 11; e >= 0; e--) {
        char path[64];
        const hsize_t steps = (hsize_t)e + 1;
        double labels[12];
        for (int t = 0; t <= e; t++)
            labels[t] = 3 + (e + t) % 4;
        snprintf(path, sizeof path, "/episode_%d/%s", e, observations);
        test_h5_add(file, path, H5T_IEEE_F64LE, steps + 1, 0, count_from(100 * e, steps + 1));
        snprintf(path, sizeof path, "/episode_%d/actions", e);
        test_h5_add(file, path, H5T_STD_I64LE, steps, 0, labels);
        snprintf(path, sizeof path, "/episode_%d/rewards", e);
        test_h5_add(file, path, H5T_IEEE_F64LE, steps, 0, count_from(0, steps));
    }
}

static void check_minari(const test_capture *c, int first_label) {
    ck_assert_uint_eq(c->samples, 78);
    ck_assert_uint_eq(test_capture_episodes(c), 12);
    for (int e = 0, row = 0; e < 12; e++) {
        for (int t = 0; t <= e; t++, row++) {
            ck_assert_float_eq(c->senses[(size_t)row * c->schema->senses], (float)(100 * e + t));
            ck_assert_int_eq(c->actions[row], first_label + (e + t) % 4);
            ck_assert_int_eq(c->ends[row], t == e);
        }
    }
}

START_TEST(minari_episodes_come_in_the_order_of_their_numbers) {
    const char *path = test_folder_path("main.h5");
    hid_t file = test_h5_create(path);
    add_minari(file, "observations");
    test_h5_close(file);
    test_capture c = must_read(path, NULL);
    check_minari(&c, 3); /* nothing says where the numbers begin */
    ck_assert_uint_eq(c.schema->head[0].actions, 7);
    ck_assert_ptr_null(c.schema->sense_names);
    test_capture_free(&c);
}
END_TEST

START_TEST(minari_spaces_say_what_actions_can_be) {
    const char *path = test_folder_path("attributes.h5");
    hid_t file = test_h5_create(path);
    add_minari(file, "observations");
    test_h5_attribute(file, "/", "action_space",
                      "{\"type\": \"Discrete\", \"n\": 9, \"start\": 3}");
    test_h5_attribute(file, "/", "observation_space",
                      "{\"type\": \"Box\", \"low\": -Infinity, \"high\": NaN, \"shape\": []}");
    test_h5_close(file);
    test_capture c = must_read(path, NULL);
    check_minari(&c, 0);
    ck_assert_uint_eq(c.schema->head[0].actions, 9);
    test_capture_free(&c);
    c = must_read(path, OPTIONS("heads=move:5"));
    check_minari(&c, 0); /* the numbers begin where they do whatever the head is called */
    ck_assert_uint_eq(c.schema->head[0].actions, 5);
    test_capture_free(&c);
}
END_TEST

/* A dataset is a folder: data/main_data.hdf5 and, beside it, data/metadata.json. */
START_TEST(minari_folders_are_read_with_their_metadata) {
    static const char metadata[] = "{\"env_spec\": \"{\\\"x\\\": NaN}\", \"gain\": Infinity, "
                                   "\"action_space\": \"{\\\"type\\\": \\\"Discrete\\\", "
                                   "\\\"n\\\": 4, \\\"start\\\": 3}\"}";
    char folder[512];
    snprintf(folder, sizeof folder, "%s", test_folder_path("set-v0"));
    test_ok(mimus__file_make_folder(test_folder_path("set-v0/data")));
    const char *path = test_folder_path("set-v0/data/main_data.hdf5");
    hid_t file = test_h5_create(path);
    add_minari(file, "observations");
    test_h5_close(file);
    test_file_write(test_folder_path("set-v0/data/metadata.json"), metadata, sizeof metadata - 1);
    const char *paths[] = {folder, test_folder_path("set-v0/data"), path};
    for (size_t i = 0; i < 3; i++) {
        const mimus_source source = {.paths = &paths[i], .count = 1};
        mimus__recording *recording = NULL;
        test_capture c = must_read(paths[i], NULL);
        check_minari(&c, 0);
        ck_assert_uint_eq(c.schema->head[0].actions, 4);
        test_capture_free(&c);
        test_ok(mimus__recording_open(&recording, &source, NULL));
        ck_assert_uint_eq(mimus__recording_samples(recording), 78);
        mimus__recording_free(recording);
    }
    /* what is not understood is not needed */
    test_file_write(test_folder_path("set-v0/data/metadata.json"), metadata, 40);
    test_capture c = must_read(path, NULL);
    check_minari(&c, 3);
    test_capture_free(&c);
}
END_TEST

START_TEST(spaces_are_laid_flat_with_names) {
    const char *path = test_folder_path("dict.h5");
    hid_t file = test_h5_create(path);
    for (int e = 0; e < 2; e++) {
        char name[64];
        static const struct {
            const char *name;
            hsize_t rows, width;
            double first;
        } sets[] = {{"observations/pos", 4, 2, 10},
                    {"observations/arm/_index_10", 4, 0, 50},
                    {"observations/arm/_index_2", 4, 0, 40},
                    {"observations/Hp", 4, 1, 0},
                    {"observations/action_mask", 4, 5, 0},
                    {"actions/turn", 3, 2, 0},
                    {"actions/fire", 3, 0, 0}};
        for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
            hsize_t elements = sets[i].rows * (sets[i].width > 0 ? sets[i].width : 1);
            const double *values = strncmp(sets[i].name, "act", 3) == 0
                                       ? (const double[6]){0, 1, 1, 0, 1, 1}
                                       : count_from(sets[i].first, elements);
            snprintf(name, sizeof name, "/episode_%d/%s", e, sets[i].name);
            test_h5_add(file, name, H5T_IEEE_F32BE, sets[i].rows, sets[i].width, values);
        }
    }
    test_h5_attribute(file, "/", "action_space",
                      "{\"type\": \"Dict\", \"subspaces\": {\"fire\": {\"type\": \"MultiBinary\", "
                      "\"n\": 1}, \"turn\": {\"type\": \"MultiDiscrete\", \"nvec\": [[2], [1]], "
                      "\"start\": [0, 0]}}}");
    test_h5_close(file);
    static const char *const senses[] = {"Hp", "arm/_index_2", "arm/_index_10", "pos[0]", "pos[1]"};
    static const char *const heads[] = {"fire", "turn[0]", "turn[1]"};
    /* a head of one action has two here: the masks need a sixth */
    must_fail(path, NULL, MIMUS_ERR_ARGUMENT, "makes 6 actions in all, and the masks are 5 wide");
    test_capture c = must_read(path, OPTIONS("masks="));
    ck_assert_uint_eq(c.schema->senses, 10); /* an array that is no mask is senses */
    test_capture_free(&c);
    c = must_read(path, OPTIONS("senses=Hp,arm,pos", "masks="));
    ck_assert_uint_eq(c.samples, 6);
    ck_assert_uint_eq(c.schema->senses, 5);
    for (size_t i = 0; i < 5; i++)
        ck_assert_str_eq(c.schema->sense_names[i], senses[i]);
    for (size_t i = 0; i < 3; i++)
        ck_assert_str_eq(c.schema->head[i].name, heads[i]);
    const float second[] = {1, 41, 51, 12, 13};
    for (size_t i = 0; i < 5; i++)
        ck_assert_float_eq(c.senses[5 + i], second[i]);
    ck_assert_uint_eq(c.actions[0], 0); /* fire, turn[0], turn[1] of the first sample */
    ck_assert_uint_eq(c.actions[1], 0);
    ck_assert_uint_eq(c.actions[2], 1);
    test_capture_free(&c);
}
END_TEST

START_TEST(masks_come_from_infos_and_observations) {
    const char *path = test_folder_path("masks.h5");
    const double masks[3][4] = {{1, 0, 1, 1}, {0, 1, 1, 0}, {1, 1, 1, 1}}; /* T + 1 rows */
    const double labels[2] = {0, 1}, weights[3] = {0.5, 2, 7};
    static const char *const places[] = {"infos/action_mask", "action_masks",
                                         "observations/action_mask", "observations/action_masks"};
    for (size_t i = 0; i < 4; i++) {
        char name[64];
        hid_t file = test_h5_create(path);
        snprintf(name, sizeof name, "/episode_0/%s", places[i]);
        test_h5_add(file, name, H5T_STD_I8LE, 3, 4, masks[0]);
        test_h5_add(file, "/episode_0/observations/x", H5T_IEEE_F32LE, 3, 0, count_from(0, 3));
        test_h5_add(file, "/episode_0/actions", H5T_STD_I8LE, 2, 0, labels);
        test_h5_add(file, "/episode_0/infos/weights", H5T_IEEE_F64LE, 3, 0, weights);
        test_h5_close(file);
        test_capture c = must_read(path, NULL);
        ck_assert_uint_eq(c.samples, 2);
        ck_assert_uint_eq(c.schema->senses, 1);
        ck_assert_uint_eq(c.schema->head[0].actions, 4);
        for (size_t a = 0; a < 8; a++)
            ck_assert_uint_eq(c.legal[a], masks[a / 4][a % 4] != 0);
        ck_assert_float_eq(c.weights[1], 2);
        test_capture_free(&c);
    }
}
END_TEST

START_TEST(flat_files_split_episodes_as_d4rl_does) {
    const char *path = test_folder_path("d4rl.h5");
    const double terminals[6] = {0, 1, 0, 0, 0, 0}, timeouts[6] = {0, 0, 0, 0, 1, 0};
    const double labels[6] = {0, 1, 2, 0, 1, 2}, numbers[6] = {7, 7, 7, 2, 2, 9};
    hid_t file = test_h5_create(path);
    test_h5_add(file, "observations", H5T_IEEE_F32LE, 6, 2, count_from(0, 12));
    test_h5_add(file, "actions", H5T_IEEE_F32LE, 6, 1, labels);
    test_h5_add(file, "terminals", H5T_STD_U8LE, 6, 1, terminals);
    test_h5_add(file, "timeouts", H5T_STD_U8LE, 6, 0, timeouts);
    test_h5_add(file, "infos/number", H5T_STD_I32LE, 6, 1, numbers);
    test_h5_close(file);
    static const struct {
        const char *options[4];
        const char *ends;
    } cases[] = {
        {{NULL}, ".|..||"},
        {{"dones=timeouts", NULL}, "....||"},
        {{"episode=infos/number", NULL}, "..|.||"},
        {{"starts=terminals", NULL}, "|....|"},
        {{"dones=", NULL}, ".....|"},
        {{"senses=/observations", "actions=/actions", "dones=/terminals,/timeouts"}, ".|..||"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        test_capture c = must_read(path, cases[i].options);
        check_ends(&c, cases[i].ends);
        for (size_t k = 0; k < 12; k++)
            ck_assert_float_eq(c.senses[k], (float)k);
        test_capture_free(&c);
    }
    must_fail(path, OPTIONS("dones=terminals", "episode=infos/number"), MIMUS_ERR_ARGUMENT,
              "give one");
    must_fail(path, OPTIONS("senses=nothing"), MIMUS_ERR_ARGUMENT,
              "option senses: no \"nothing\"; there is actions float32 (6, 1), infos/number int32 "
              "(6, 1), observations float32 (6, 2), terminals uint8 (6, 1), timeouts uint8 (6,)");
    must_fail(path, OPTIONS("masks=timeouts"), MIMUS_ERR_ARGUMENT, "the masks are 1 wide");
    must_fail(path, OPTIONS("weights=observations"), MIMUS_ERR_DATA, "too many elements; 1 to 1");
}
END_TEST

static void add_demo(hid_t file, int number, hsize_t steps) {
    char path[64];
    snprintf(path, sizeof path, "/data/demo_%d/obs/object", number);
    test_h5_add(file, path, H5T_IEEE_F64LE, steps, 1, count_from(100 * number, steps));
    snprintf(path, sizeof path, "/data/demo_%d/obs/eef", number);
    test_h5_add(file, path, H5T_IEEE_F64LE, steps, 2, count_from(0, 2 * steps));
    snprintf(path, sizeof path, "/data/demo_%d/next_obs/eef", number);
    test_h5_add(file, path, H5T_IEEE_F64LE, steps, 2, count_from(0, 2 * steps));
    snprintf(path, sizeof path, "/data/demo_%d/actions", number);
    test_h5_add(file, path, H5T_STD_I32LE, steps, 1, count_from(0, steps));
}

START_TEST(robomimic_demos_and_their_lists) {
    const char *path = test_folder_path("robomimic.h5");
    static const char names[2][8] = {"demo_10", "demo_2"};
    const hsize_t two[] = {2};
    hid_t file = test_h5_create(path), text = H5Tcopy(H5T_C_S1);
    add_demo(file, 10, 3);
    add_demo(file, 2, 2);
    add_demo(file, 1, 1);
    H5Tset_size(text, 8);
    test_h5_declare(file, "/mask/train", text, 1, two, H5P_DEFAULT);
    test_h5_declare(file, "/mask/lost", text, 1, two, H5P_DEFAULT);
    hid_t set = H5Dopen2(file, "/mask/train", H5P_DEFAULT);
    ck_assert(H5Dwrite(set, text, H5S_ALL, H5S_ALL, H5P_DEFAULT, names) >= 0);
    H5Dclose(set);
    H5Tclose(text);
    test_h5_close(file);

    test_capture c = must_read(path, NULL);
    check_ends(&c, "|.|..|");
    const float first[] = {100, 200, 201, 1000, 1001, 1002};
    for (size_t i = 0; i < 6; i++)
        ck_assert_float_eq(c.senses[i * 3 + 2], first[i]); /* eef comes before object */
    ck_assert_str_eq(c.schema->sense_names[1], "eef[1]");
    ck_assert_str_eq(c.schema->sense_names[2], "object");
    ck_assert(!c.schema->masks);
    test_capture_free(&c);
    c = must_read(path, OPTIONS("filter=train", "senses=object"));
    check_ends(&c, ".|..|");
    ck_assert_float_eq(c.senses[2], 1000);
    test_capture_free(&c);
    must_fail(path, OPTIONS("filter=all"), MIMUS_ERR_ARGUMENT,
              "no list \"all\"; /mask of a robomimic file holds lost text (2,), train text (2,)");
    must_fail(path, OPTIONS("filter=lost"), MIMUS_ERR_DATA, "lists 2 demos, and 0 of them");
    must_fail(path, OPTIONS("dones=dones"), MIMUS_ERR_ARGUMENT, "each episode has a group");
}
END_TEST

START_TEST(bins_are_made_of_continuous_actions) {
    const char *path = test_folder_path("continuous.h5");
    hid_t file = test_h5_create(path);
    const double actions[4][2] = {{-1, 0}, {0.5, 1}, {1, 2}, {0, 3}};
    test_h5_add(file, "/episode_0/observations", H5T_IEEE_F32LE, 3, 0, count_from(0, 3));
    test_h5_add(file, "/episode_0/actions", H5T_IEEE_F64LE, 2, 2, actions[0]);
    test_h5_add(file, "/episode_1/observations", H5T_IEEE_F32LE, 3, 0, count_from(0, 3));
    test_h5_add(file, "/episode_1/actions", H5T_IEEE_F64LE, 2, 2, actions[2]);
    test_h5_close(file);
    must_fail(
        path, NULL, MIMUS_ERR_UNSUPPORTED,
        "continuous.h5: /episode_0/actions: float64 0.5 in row 1, column 0 is not an integer; "
        "the option bin cuts continuous actions into bins: --bin all:uniform:11");
    const char *options[] = {"bin=0:uniform:4", NULL};
    const mimus_source source = {.paths = &path, .count = 1, .options = options};
    mimus__recording *recording = NULL;
    mimus__block block;
    test_ok(mimus__recording_open(&recording, &source, NULL));
    test_ok(mimus__recording_block(recording, 0, &block));
    const mimus_schema *schema = mimus__recording_schema(recording);
    ck_assert_uint_eq(schema->head[0].actions, 4);
    ck_assert_float_eq(schema->head[0].bin_edges[0], -0.5F);
    ck_assert_uint_eq(schema->head[1].actions, 4); /* labels, by the largest */
    static const uint16_t expected[] = {0, 0, 3, 1, 3, 2, 2, 3};
    for (size_t i = 0; i < 8; i++)
        ck_assert_uint_eq(block.actions[i], expected[i]);
    mimus__recording_free(recording);
}
END_TEST

/* ---------------------------------------------------------------- elements */

static hid_t half_float(void) {
    hid_t type = H5Tcopy(H5T_IEEE_F32BE);
    ck_assert(H5Tset_fields(type, 15, 10, 5, 0, 10) >= 0 && H5Tset_precision(type, 16) >= 0 &&
              H5Tset_size(type, 2) >= 0 && H5Tset_ebias(type, 15) >= 0);
    return type;
}

START_TEST(every_type_reads_in_both_orders) {
    const char *path = test_folder_path("types.h5");
    const double values[6] = {0, 2, 1, 0, 1, 2};
    hid_t boolean = H5Tenum_create(H5T_STD_I8LE), half = half_float();
    const hid_t types[] = {H5T_STD_I8LE,   H5T_STD_U8BE,  H5T_STD_I16LE,  H5T_STD_U16BE,
                           H5T_STD_I32BE,  H5T_STD_U32LE, H5T_STD_I64LE,  H5T_STD_I64BE,
                           H5T_STD_U64BE,  half,          H5T_IEEE_F32LE, H5T_IEEE_F32BE,
                           H5T_IEEE_F64BE, H5T_IEEE_F64LE};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        hid_t file = test_h5_create(path);
        test_h5_add(file, "obs", types[t], 6, 0, values);
        test_h5_add(file, "actions", types[t], 6, 0, values);
        test_h5_close(file);
        test_capture c = must_read(path, NULL);
        ck_assert_uint_eq(c.schema->head[0].actions, 3);
        for (size_t i = 0; i < 6; i++) {
            ck_assert_msg(c.senses[i] == (float)values[i], "type %zu", t);
            ck_assert_msg(c.actions[i] == values[i], "type %zu", t);
        }
        test_capture_free(&c);
    }
    int8_t no = 0, yes = 1;
    const int8_t flags[6] = {0, 1, 0, 0, 1, 0};
    const hsize_t six[] = {6};
    H5Tenum_insert(boolean, "FALSE", &no);
    H5Tenum_insert(boolean, "TRUE", &yes);
    hid_t file = test_h5_create(path);
    test_h5_add(file, "obs", H5T_IEEE_F32LE, 6, 0, values);
    test_h5_add(file, "actions", H5T_STD_I8LE, 6, 0, values);
    test_h5_declare(file, "dones", boolean, 1, six, H5P_DEFAULT);
    hid_t set = H5Dopen2(file, "dones", H5P_DEFAULT);
    ck_assert(H5Dwrite(set, boolean, H5S_ALL, H5S_ALL, H5P_DEFAULT, flags) >= 0);
    H5Dclose(set);
    test_h5_close(file);
    test_capture c = must_read(path, NULL);
    check_ends(&c, ".|..||");
    test_capture_free(&c);
    H5Tclose(boolean);
    H5Tclose(half);
}
END_TEST

/* Whatever the chunks are, the rows are the same: whole ones at once, larger than is read at once,
 * cut across the rows, ragged at both ends. */
START_TEST(every_shape_of_chunks_reads_the_same) {
    enum { ROWS = 5003, WIDTH = 37 };
    static const hsize_t chunks[][2] = {{1, 1},    {1, 37},    {64, 37},   {1000, 37},
                                        {5003, 8}, {2048, 10}, {5000, 36}, {7, 5}};
    const char *path = test_folder_path("chunks.h5");
    const hsize_t labels_chunk[] = {49};
    double *values = malloc(ROWS * WIDTH * sizeof *values);
    double *labels = calloc(ROWS, sizeof *labels);
    ck_assert(values != NULL && labels != NULL);
    for (size_t i = 0; i < ROWS * WIDTH; i++)
        values[i] = (double)(i * 2654435761U % 16777216U);
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        const hsize_t rows = i == 0 ? 50 : ROWS; /* a chunk an element is slow to write */
        hid_t file = test_h5_create(path);
        test_h5_add_chunked(file, "obs", H5T_IEEE_F64LE, rows, WIDTH, chunks[i], values);
        test_h5_add_chunked(file, "actions", H5T_STD_I64LE, rows, 0, labels_chunk, labels);
        test_h5_close(file);
        test_capture c = must_read(path, NULL);
        ck_assert_uint_eq(c.samples, rows);
        for (size_t k = 0; k < rows * WIDTH; k++)
            ck_assert_msg(c.senses[k] == (float)values[k], "chunks %zu, element %zu", i, k);
        test_capture_free(&c);
    }
    free(values);
    free(labels);
}
END_TEST

/* ----------------------------------------------------------------- refused */

/* A file with actions of six labels, and what `obs` the test adds. */
static hid_t begin_file(const char *path) {
    const double labels[6] = {0, 1, 2, 0, 1, 2};
    hid_t file = test_h5_create(path);
    test_h5_add(file, "actions", H5T_STD_I64LE, 6, 0, labels);
    return file;
}

START_TEST(elements_that_are_no_numbers_are_refused) {
    const char *path = test_folder_path("odd.h5");
    const hsize_t six[] = {6}, two[] = {2};
    hid_t text = H5Tcopy(H5T_C_S1), variable = H5Tcopy(H5T_C_S1),
          rows = H5Tvlen_create(H5T_STD_U8LE);
    hid_t pair = H5Tcreate(H5T_COMPOUND, 16), array = H5Tarray_create2(H5T_IEEE_F32LE, 1, two);
    hid_t opaque = H5Tcreate(H5T_OPAQUE, 4), narrow = H5Tcopy(H5T_STD_I32LE);
    H5Tset_size(text, 4);
    H5Tset_size(variable, H5T_VARIABLE);
    H5Tinsert(pair, "re", 0, H5T_IEEE_F64LE);
    H5Tinsert(pair, "im", 8, H5T_IEEE_F64LE);
    H5Tset_precision(narrow, 12);
    const struct {
        hid_t type;
        const char *message;
    } cases[] = {{text, "holds text;"},
                 {variable, "holds text;"},
                 {rows, "holds rows of varying length;"},
                 {pair, "holds structures (a compound type);"},
                 {array, "holds arrays as elements;"},
                 {opaque, "holds raw bytes;"},
                 {narrow, "holds integers of an unusual layout;"},
                 {H5T_STD_REF_OBJ, "holds references;"},
                 {H5T_NATIVE_LDOUBLE, "holds floats of an unusual layout;"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hid_t file = begin_file(path);
        test_h5_declare(file, "obs", cases[i].type, 1, six, H5P_DEFAULT);
        test_h5_close(file);
        must_fail(path, NULL, MIMUS_ERR_UNSUPPORTED, cases[i].message);
    }
    const hid_t made[] = {text, variable, rows, pair, array, opaque, narrow};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        H5Tclose(made[i]);
}
END_TEST

START_TEST(images_are_refused_with_what_to_do) {
    const char *path = test_folder_path("images.h5");
    const hsize_t colour[] = {6, 64, 48, 3}, stacked[] = {6, 4, 84, 84}, grid[] = {6, 7, 7, 3};
    hid_t early = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_alloc_time(early, H5D_ALLOC_TIME_EARLY);
    hid_t file = begin_file(path);
    test_h5_declare(file, "obs/camera", H5T_STD_U8LE, 4, colour, early);
    test_h5_declare(file, "obs/stack", H5T_STD_U8LE, 4, stacked, early);
    test_h5_declare(file, "obs/grid", H5T_STD_U8LE, 4, grid, early);
    test_h5_add(file, "obs/speed", H5T_IEEE_F32LE, 6, 0, count_from(0, 6));
    test_h5_close(file);
    must_fail(
        path, NULL, MIMUS_ERR_UNSUPPORTED,
        "/obs/camera: holds images, and mimus learns from vectors; --senses grid,speed leaves "
        "it out");
    test_capture c = must_read(path, OPTIONS("senses=grid,speed"));
    ck_assert_uint_eq(c.schema->senses, 7 * 7 * 3 + 1);
    test_capture_free(&c);
    /* JPEGs of one length, as Minari writes them of images */
    const double jpeg[6][5] = {{0xff, 0xd8, 0xff, 0xe0, 1}, {0xff, 0xd8, 0xff, 0xe0, 2}};
    file = begin_file(path);
    test_h5_add(file, "obs", H5T_STD_U8LE, 6, 5, jpeg[0]);
    test_h5_close(file);
    must_fail(path, NULL, MIMUS_ERR_UNSUPPORTED, "/obs: holds images");
    H5Pclose(early);
}
END_TEST

START_TEST(no_other_file_is_opened) {
    const char *path = test_folder_path("links.h5"), *other = test_folder_path("pipe");
    ck_assert_int_eq(mkfifo(other, 0600), 0); /* whoever opens it does not come back */
    hid_t file = begin_file(path);
    H5Lcreate_external(other, "/x", file, "obs", H5P_DEFAULT, H5P_DEFAULT);
    test_h5_close(file);
    must_fail(path, NULL, MIMUS_ERR_UNSUPPORTED, "/obs: is a link into another file, ");

    file = begin_file(path); /* the way there leads through it */
    H5Lcreate_external(other, "/", file, "elsewhere", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/elsewhere/x", file, "obs", H5P_DEFAULT, H5P_DEFAULT);
    test_h5_close(file);
    must_fail(path, NULL, MIMUS_ERR_FORMAT, "/obs: cannot be opened");
    must_fail(path, OPTIONS("senses=/elsewhere/x"), MIMUS_ERR_UNSUPPORTED,
              "/elsewhere: is a link into another file");

    file = begin_file(path); /* the rows of a dataset lie in it */
    const hsize_t six[] = {6};
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_external(creation, other, 0, H5F_UNLIMITED);
    test_h5_declare(file, "obs", H5T_IEEE_F32LE, 1, six, creation);
    test_h5_close(file);
    must_fail(path, NULL, MIMUS_ERR_UNSUPPORTED, "/obs: its data lies in other files");
    H5Pclose(creation);

    file = begin_file(path);
    hid_t space = H5Screate_simple(1, six, NULL);
    creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_virtual(creation, space, other, "/x", space);
    test_h5_declare(file, "obs", H5T_IEEE_F32LE, 1, six, creation);
    test_h5_close(file);
    must_fail(path, NULL, MIMUS_ERR_UNSUPPORTED, "/obs: its data lies in other files");
    H5Pclose(creation);
    H5Sclose(space);

    file = test_h5_create(path); /* one of many episodes */
    add_minari(file, "observations");
    H5Lcreate_external(other, "/episode_0", file, "episode_12", H5P_DEFAULT, H5P_DEFAULT);
    test_h5_close(file);
    must_fail(path, NULL, MIMUS_ERR_UNSUPPORTED, "/episode_12: is a link into another file, ");
}
END_TEST

START_TEST(links_within_the_file_are_followed) {
    const char *path = test_folder_path("soft.h5");
    hid_t file = begin_file(path);
    test_h5_add(file, "deep/down/x", H5T_IEEE_F32LE, 6, 0, count_from(5, 6));
    H5Lcreate_soft("/deep/down/x", file, "obs", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/nowhere", file, "observations", H5P_DEFAULT, H5P_DEFAULT);
    test_h5_close(file);
    test_capture c = must_read(path, NULL);
    ck_assert_float_eq(c.senses[5], 10);
    test_capture_free(&c);
}
END_TEST

START_TEST(circles_end) {
    const char *path = test_folder_path("circle.h5");
    hid_t file = begin_file(path);
    test_h5_group(file, "obs/a");
    for (int i = 0; i < 40; i++) { /* 40 ways at every turn */
        char name[32];
        snprintf(name, sizeof name, "/obs/a/again%d", i);
        H5Lcreate_hard(file, "/obs", file, name, H5P_DEFAULT, H5P_DEFAULT);
    }
    test_h5_close(file);
    must_fail(path, NULL, MIMUS_ERR_UNSUPPORTED, "do they lead in circles?");
    must_fail(path, OPTIONS("senses=nothing"), MIMUS_ERR_ARGUMENT, "there is actions int64 (6,)");
    file = begin_file(path);
    H5Lcreate_soft("/b", file, "a", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/a", file, "b", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/a", file, "obs", H5P_DEFAULT, H5P_DEFAULT);
    test_h5_close(file);
    must_fail(path, NULL, MIMUS_ERR_FORMAT, "/obs: cannot be opened: too many links");
}
END_TEST

START_TEST(sizes_that_the_file_cannot_have_are_refused) {
    const char *path = test_folder_path("sizes.h5");
    const hsize_t huge[] = {2500000000, 1}, vast[] = {UINT64_C(1) << 43, 1 << 19};
    const hsize_t wide[] = {6, 1 << 21}, empty[] = {0, 3}, chunk[] = {1 << 16, 1};
    const hsize_t rows[] = {6, 2}, heavy[] = {1 << 26, 2};
    hid_t chunked = H5Pcreate(H5P_DATASET_CREATE), heavily = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(chunked, 2, chunk);
    H5Pset_deflate(chunked, 9);
    H5Pset_chunk(heavily, 2, heavy);
    const struct {
        const hsize_t *shape;
        hid_t creation;
        const char *message;
    } cases[] = {
        {huge, H5P_DEFAULT, "2500000000 rows are declared, and none was ever written"},
        {huge, chunked, "2500000000 rows are declared, and none was ever written"},
        {vast, chunked, "is larger than memory addresses"},
        {wide, H5P_DEFAULT, "makes rows of too many elements; 1 to 1048576 fit"},
        {empty, H5P_DEFAULT, "0 rows for 6 actions"},
        {rows, H5P_DEFAULT, "6 rows are declared, and none was ever written"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hid_t file = begin_file(path);
        test_h5_declare(file, "obs", H5T_IEEE_F32LE, 2, cases[i].shape, cases[i].creation);
        test_h5_close(file);
        test_capture capture = test_capture_new();
        ck_assert_int_ne(read_with(&capture, path, NULL, NULL), MIMUS_OK);
        ck_assert_msg(strstr(mimus_last_error(), cases[i].message) != NULL, "%s lacks %s",
                      mimus_last_error(), cases[i].message);
        test_capture_free(&capture);
    }

    /* one chunk of 38,147 is there: 10 GB in some kilobytes */
    hid_t file = begin_file(path);
    test_h5_declare(file, "obs", H5T_IEEE_F32LE, 2, huge, chunked);
    hid_t set = H5Dopen2(file, "obs", H5P_DEFAULT), all = H5Dget_space(set);
    const hsize_t start[] = {0, 0}, count[] = {10, 1};
    hid_t ten = H5Screate_simple(2, count, NULL);
    H5Sselect_hyperslab(all, H5S_SELECT_SET, start, NULL, count, NULL);
    ck_assert(H5Dwrite(set, H5T_NATIVE_DOUBLE, ten, all, H5P_DEFAULT, count_from(0, 10)) >= 0);
    H5Dclose(set);
    H5Sclose(all);
    H5Sclose(ten);
    test_h5_close(file);
    must_fail(path, NULL, MIMUS_ERR_FORMAT, "declares 10000000000 bytes, which a file of ");

    file = begin_file(path);
    const hsize_t some[] = {1 << 17, 1};
    test_h5_declare(file, "obs", H5T_IEEE_F32LE, 2, some, chunked);
    set = H5Dopen2(file, "obs", H5P_DEFAULT), all = H5Dget_space(set);
    ten = H5Screate_simple(2, count, NULL);
    H5Sselect_hyperslab(all, H5S_SELECT_SET, start, NULL, count, NULL);
    ck_assert(H5Dwrite(set, H5T_NATIVE_DOUBLE, ten, all, H5P_DEFAULT, count_from(0, 10)) >= 0);
    H5Dclose(set);
    H5Sclose(all);
    H5Sclose(ten);
    test_h5_close(file);
    must_fail(path, NULL, MIMUS_ERR_DATA, "only 1 of its 2 chunks were ever written");

    file = begin_file(path);
    hid_t few = H5Screate_simple(2, rows, (const hsize_t[]){H5S_UNLIMITED, 2});
    set = H5Dcreate2(file, "obs", H5T_IEEE_F32LE, few, H5P_DEFAULT, heavily, H5P_DEFAULT);
    H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, count_from(0, 12));
    H5Dclose(set);
    H5Sclose(few);
    test_h5_close(file);
    must_fail(path, NULL, MIMUS_ERR_UNSUPPORTED,
              "512 MiB and more than the 256 that are unpacked at once");
    H5Pclose(chunked);
    H5Pclose(heavily);
}
END_TEST

START_TEST(unknown_filters_are_named) {
    const char *path = test_folder_path("filter.h5");
    const hsize_t six[] = {6};
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(creation, 1, six);
    H5Pset_filter(creation, 399, H5Z_FLAG_OPTIONAL, 0, NULL);
    hid_t file = begin_file(path);
    test_h5_declare(file, "obs", H5T_IEEE_F32LE, 1, six, creation);
    hid_t set = H5Dopen2(file, "obs", H5P_DEFAULT);
    ck_assert(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, count_from(0, 6)) >=
              0);
    H5Dclose(set);
    test_h5_close(file);
    must_fail(path, NULL, MIMUS_ERR_UNSUPPORTED,
              "/obs: is packed by filter 399, and only gzip is unpacked");
    H5Pclose(creation);
}
END_TEST

START_TEST(parts_that_do_not_fit_are_named) {
    const char *path = test_folder_path("parts.h5");
    hid_t file = test_h5_create(path);
    test_h5_add(file, "/episode_0/observations", H5T_IEEE_F32LE, 3, 2, count_from(0, 6));
    test_h5_add(file, "/episode_0/actions", H5T_STD_I8LE, 2, 0, count_from(0, 2));
    test_h5_add(file, "/episode_1/observations", H5T_IEEE_F32LE, 3, 3, count_from(0, 9));
    test_h5_add(file, "/episode_1/actions", H5T_STD_I8LE, 2, 0, count_from(0, 2));
    test_h5_close(file);
    must_fail(path, NULL, MIMUS_ERR_DATA,
              "/episode_1: its senses are 3 wide, and those of /episode_0 2");
    file = test_h5_create(path);
    test_h5_add(file, "/episode_0/observations", H5T_IEEE_F32LE, 5, 2, count_from(0, 10));
    test_h5_add(file, "/episode_0/actions", H5T_STD_I8LE, 2, 0, count_from(0, 2));
    test_h5_close(file);
    must_fail(path, NULL, MIMUS_ERR_DATA, "/episode_0/observations: 5 rows for 2 actions");
    file = test_h5_create(path);
    test_h5_add(file, "/episode_0/observations", H5T_IEEE_F32LE, 3, 2, count_from(0, 6));
    test_h5_close(file);
    must_fail(
        path, NULL, MIMUS_ERR_DATA,
        "which dataset holds the actions of /episode_0? The option actions names it; expected "
        "actions, acts, found observations float32 (3, 2)");
    file = test_h5_create(path);
    test_h5_close(file);
    must_fail(path, NULL, MIMUS_ERR_DATA, "found no dataset");
}
END_TEST

/* ------------------------------------------------------------------ damage */

/* Whatever is missing at its end, a file is refused in one line. */
START_TEST(truncated_files_end_in_a_line) {
    char *bytes = NULL;
    size_t size = 0;
    const char *path = test_folder_path("whole.h5"), *damaged = test_folder_path("damaged.h5");
    hid_t file = test_h5_create(path);
    const hsize_t chunk[] = {4, 2};
    add_demo(file, 3, 2);
    test_h5_add_chunked(file, "/data/demo_4/obs/eef", H5T_IEEE_F32LE, 9, 2, chunk,
                        count_from(0, 18));
    test_h5_add(file, "/data/demo_4/obs/object", H5T_IEEE_F32LE, 9, 1, count_from(0, 9));
    test_h5_add(file, "/data/demo_4/actions", H5T_STD_I8LE, 9, 0, count_from(0, 9));
    test_h5_attribute(file, "/", "action_space", "{\"type\": \"Discrete\", \"n\": 9}");
    test_h5_close(file);
    test_ok(mimus__file_read(path, 1 << 20, &bytes, &size));
    size_t refused = 0;
    for (size_t length = 0; length < size; length += size / 97) {
        test_file_write(damaged, bytes, length);
        must_fail(damaged, NULL, MIMUS_ERR_FORMAT, "");
        refused++;
    }
    ck_assert_uint_ge(refused, 97);
    free(bytes);
}
END_TEST

/* Whatever is turned over in it, a file is read or refused in one line, and be it that libhdf5
 * crashes. */
START_TEST(damaged_files_end_in_a_line) {
    char *bytes = NULL;
    size_t size = 0, refused = 0;
    const char *path = test_folder_path("whole.h5"), *damaged = test_folder_path("damaged.h5");
    hid_t file = test_h5_create(path);
    const hsize_t chunk[] = {4, 2};
    test_h5_add_chunked(file, "/observations", H5T_IEEE_F32LE, 9, 2, chunk, count_from(0, 18));
    test_h5_add(file, "/actions", H5T_STD_I8LE, 9, 0, count_from(0, 9));
    test_h5_attribute(file, "/", "action_space", "{\"type\": \"Discrete\", \"n\": 9}");
    test_h5_close(file);
    test_ok(mimus__file_read(path, 1 << 20, &bytes, &size));
    apart = true;
    mimus__apart_patience = 1;
    for (size_t i = 0, turned = 0; i < size; i++) {
        if (bytes[i] == 0 || turned++ % 3 != 0) /* in the zeros there is nothing */
            continue;
        bytes[i] = (char)(bytes[i] ^ 0x85);
        test_file_write(damaged, bytes, size);
        bytes[i] = (char)(bytes[i] ^ 0x85);
        test_capture c = test_capture_new();
        if (read_with(&c, damaged, NULL, NULL) != MIMUS_OK) {
            const char *message = mimus_last_error();
            ck_assert_msg(strncmp(message, damaged, strlen(damaged)) == 0 &&
                              strchr(message, '\n') == NULL,
                          "byte %zu: %s", i, message);
            refused++;
        }
        test_capture_free(&c);
    }
    ck_assert_uint_ge(refused, 30);
    free(bytes);
}
END_TEST

/* The library's own reports, which belong to the program, are neither shown nor changed. */
static herr_t no_report(hid_t stack, void *user) {
    (void)stack;
    ++*(int *)user;
    return 0;
}

START_TEST(the_programs_error_reports_stay_its_own) {
    int reports = 0;
    H5E_auto2_t reporter = NULL;
    void *user = NULL;
    const char *path = test_folder_path("no.h5");
    test_file_write(path, "\x89HDF\r\n\x1a\n and nothing else", 26);
    H5Eset_auto2(H5E_DEFAULT, no_report, &reports);
    must_fail(path, NULL, MIMUS_ERR_FORMAT, "cannot be opened as HDF5: ");
    H5Eget_auto2(H5E_DEFAULT, &reporter, &user);
    ck_assert(reporter == no_report && user == &reports);
    ck_assert_int_eq(reports, 0);
}
END_TEST

static bool stop(void *user) {
    return ++*(int *)user > 1;
}

START_TEST(a_watch_can_stop_it) {
    const char *path = test_folder_path("stop.h5");
    hid_t file = test_h5_create(path);
    add_minari(file, "observations");
    test_h5_close(file);
    for (int a = 0; a < 2; a++) {
        int looks = 0;
        const mimus_watch watch = {.user = &looks, .should_stop = stop};
        test_capture c = test_capture_new();
        apart = a != 0;
        test_fails(read_with(&c, path, NULL, &watch), MIMUS_ERR_STOPPED, "stopped on request");
        test_capture_free(&c);
    }
}
END_TEST

/* ------------------------------------------------------------------ spaces */

START_TEST(spaces_are_found_by_path) {
    static const char text[] =
        "{\"type\": \"Tuple\", \"subspaces\": [{\"type\": \"Discrete\", \"n\": 3, \"start\": -1}, "
        "{\"type\": \"Dict\", \"subspaces\": {\"a\": {\"type\": \"MultiDiscrete\", \"nvec\": [[4, "
        "5], [6, 7]], \"start\": [[0, 0], [0, 2]]}, \"NaN\\\"\": {\"type\": \"Box\", \"dtype\": "
        "\"uint8\", \"shape\": [64, 64], \"low\": [NaN, -Infinity, Infinity]}}}]}";
    json_t *space = NULL;
    uint32_t actions = 0;
    int64_t start = 0;
    test_ok(mimus__gym_parse(&space, text, "text"));
    ck_assert(mimus__gym_choice(mimus__gym_find(space, "/_index_0"), 0, &actions, &start));
    ck_assert(actions == 3 && start == -1);
    ck_assert(!mimus__gym_choice(mimus__gym_find(space, "/_index_0"), 1, &actions, &start));
    ck_assert(mimus__gym_choice(mimus__gym_find(space, "/_index_1/a"), 3, &actions, &start));
    ck_assert(actions == 7 && start == 2);
    ck_assert(!mimus__gym_choice(space, 0, &actions, &start));
    ck_assert(!mimus__gym_choice(NULL, 0, &actions, &start));
    ck_assert(mimus__gym_is_image(mimus__gym_find(space, "/_index_1/NaN\"")));
    ck_assert_ptr_null(mimus__gym_find(space, "/_index_2"));
    ck_assert_ptr_null(mimus__gym_find(space, "/a"));
    ck_assert_ptr_null(mimus__gym_find(space, "/_index_1/a/b"));
    json_decref(space);
    test_fails(mimus__gym_parse(&space, "{\"n\": 1e999}", "text"), MIMUS_ERR_FORMAT, "text");
}
END_TEST

static void clean(void) {
    test_folder_remove();
}

int main(void) {
    Suite *suite = suite_create("h5");
    TCase *all = tcase_create("h5");
    tcase_add_checked_fixture(all, NULL, clean);
    tcase_add_test(all, minari_episodes_come_in_the_order_of_their_numbers);
    tcase_add_test(all, minari_spaces_say_what_actions_can_be);
    tcase_add_test(all, minari_folders_are_read_with_their_metadata);
    tcase_add_test(all, spaces_are_laid_flat_with_names);
    tcase_add_test(all, masks_come_from_infos_and_observations);
    tcase_add_test(all, flat_files_split_episodes_as_d4rl_does);
    tcase_add_test(all, robomimic_demos_and_their_lists);
    tcase_add_test(all, bins_are_made_of_continuous_actions);
    tcase_add_test(all, every_type_reads_in_both_orders);
    tcase_add_test(all, every_shape_of_chunks_reads_the_same);
    tcase_add_test(all, elements_that_are_no_numbers_are_refused);
    tcase_add_test(all, images_are_refused_with_what_to_do);
    tcase_add_test(all, no_other_file_is_opened);
    tcase_add_test(all, links_within_the_file_are_followed);
    tcase_add_test(all, circles_end);
    tcase_add_test(all, sizes_that_the_file_cannot_have_are_refused);
    tcase_add_test(all, unknown_filters_are_named);
    tcase_add_test(all, parts_that_do_not_fit_are_named);
    tcase_add_test(all, truncated_files_end_in_a_line);
    tcase_add_test(all, damaged_files_end_in_a_line);
    tcase_add_test(all, the_programs_error_reports_stay_its_own);
    tcase_add_test(all, a_watch_can_stop_it);
    tcase_add_test(all, spaces_are_found_by_path);
    suite_add_tcase(suite, all);
    return test_run(suite);
}
