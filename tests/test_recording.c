/* Reading recordings back: every shape, several files, and every kind of damage. */
#include "npz_file.h"
#include "play.h"
#include "support.h"

#include "file.h"
#include "scan.h"
#include "sink.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static const mimus_head one_head[] = {{.name = "a", .actions = 2}};
static const mimus_schema tiny = {1, NULL, 1, one_head, false, false};
static const mimus_head seven_heads[] = {{.actions = 10}, {.actions = 9}, {.actions = 8},
                                         {.actions = 7},  {.actions = 6}, {.actions = 5},
                                         {.actions = 2}};
static const mimus_schema reference = {143, NULL, 7, seven_heads, true, true};
static const mimus_head head32[] = {{.actions = 30}, {.actions = 2}};
static const mimus_head head33[] = {{.actions = 33}};
static const mimus_head head64[] = {{.actions = 64}};
static const mimus_head head65[] = {{.actions = 3}, {.actions = 62}};
static const mimus_schema mask32 = {4, NULL, 2, head32, true, false};
static const mimus_schema mask33 = {5, NULL, 1, head33, true, true};
static const mimus_schema mask64 = {63, NULL, 1, head64, true, false};
static const mimus_schema mask65 = {65, NULL, 2, head65, true, false};
static const mimus_schema weighted = {3, NULL, 1, one_head, false, true};
static const mimus_schema wide = {300000, NULL, 1, one_head, true, true};

static mimus__recording *open_one(const char *path) {
    mimus__recording *recording = NULL;
    test_ok(test_recording_open(&recording, path));
    return recording;
}

static size_t losses(const mimus__recording *recording) {
    return json_array_size(mimus__recording_losses(recording));
}

/* -------------------------------------------------------------- round trip */

static void round_trip(const mimus_schema *schema, uint64_t count, uint32_t episode) {
    const char *path = test_folder_path("trip.rec");
    const test_play play = {schema, (uint32_t)count, episode};
    test_play_record(path, &play, count);
    mimus__recording *recording = open_one(path);
    const uint64_t capacity = mimus__chunk_capacity(schema);
    ck_assert_uint_eq(mimus__recording_samples(recording), count);
    ck_assert_uint_eq(mimus__recording_blocks(recording), (count + capacity - 1) / capacity);
    ck_assert_uint_eq(mimus__recording_episodes(recording),
                      episode != 0 ? (count + episode - 1) / episode : count > 0);
    ck_assert_uint_eq(losses(recording), 0);
    test_ok(mimus__schema_match(schema, "a", mimus__recording_schema(recording), "b", true));
    test_play_check(recording, 0, &play, count);
    mimus__recording_free(recording);
    remove(path);
}

START_TEST(every_shape_comes_back) {
    const mimus_schema *schemas[] = {&tiny,   &reference, &mask32,  &mask33,
                                     &mask64, &mask65,    &weighted};
    const uint64_t counts[] = {0, 1, 63, 64, 65, 1000};
    const uint32_t episodes[] = {0, 1, 64, 7, 33, 250};
    for (size_t s = 0; s < sizeof schemas / sizeof *schemas; s++) {
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
            round_trip(schemas[s], counts[c], episodes[(s + c) % 6]);
    }
}
END_TEST

START_TEST(chunk_boundaries_come_back) {
    const uint64_t capacity = mimus__chunk_capacity(&reference);
    for (uint64_t chunks = 1; chunks <= 2; chunks++) {
        round_trip(&reference, chunks * capacity - 1, 0);
        round_trip(&reference, chunks * capacity, 50);
        round_trip(&reference, chunks * capacity + 1, 0); /* one episode over all chunks */
    }
    round_trip(&tiny, mimus__chunk_capacity(&tiny) + 1, 1000);
}
END_TEST

START_TEST(wide_samples_come_back) {
    ck_assert_uint_eq(mimus__chunk_capacity(&wide), 1);
    round_trip(&wide, 1, 0);
    round_trip(&wide, 3, 2);
}
END_TEST

START_TEST(chunks_are_about_a_mebibyte) {
    const mimus_schema *schemas[] = {&reference, &mask32, &mask33, &mask64, &mask65, &weighted};
    for (size_t s = 0; s < sizeof schemas / sizeof *schemas; s++) {
        const uint32_t capacity = mimus__chunk_capacity(schemas[s]);
        const uint64_t bytes = mimus__chunk_columns(schemas[s], capacity).bytes;
        ck_assert_uint_le(bytes, 1 << 20);
        ck_assert(capacity == 65536 ||
                  mimus__chunk_columns(schemas[s], capacity + 1).bytes > 1 << 20);
        ck_assert(capacity == 65536 || bytes > (1 << 20) - 2048);
    }
    ck_assert_uint_eq(mimus__chunk_capacity(&tiny), 65536);
}
END_TEST

/* ----------------------------------------------------------- several files */

START_TEST(several_files_are_one_recording) {
    const test_play plays[] = {{&mask65, 1, 10}, {&mask65, 2, 0}, {&mask65, 3, 7}};
    const uint64_t counts[] = {1000, 0, 65};
    const char *paths[3];
    mimus__recording *recording = NULL;
    for (int i = 0; i < 3; i++) {
        char name[] = "0.rec";
        name[0] = (char)('0' + i);
        paths[i] = test_folder_path(name);
        test_play_record(paths[i], &plays[i], counts[i]);
    }
    test_ok(mimus__recording_open(&recording, &(mimus_source){.paths = paths, .count = 3}, NULL));
    ck_assert_uint_eq(mimus__recording_samples(recording), 1065);
    ck_assert_uint_eq(mimus__recording_episodes(recording), 100 + 10);
    ck_assert_uint_eq(json_array_size(mimus__recording_metadata(recording)), 3);
    test_play_check(recording, 0, &plays[0], 1000);
    test_play_check(recording, 1000, &plays[2], 65);
    mimus__recording_free(recording);
}
END_TEST

START_TEST(files_that_disagree_are_named) {
    const char *paths[] = {test_folder_path("a.rec"), test_folder_path("b.rec")};
    mimus__recording *recording = NULL;
    test_play_record(paths[0], &(test_play){&mask32, 1, 0}, 3);
    test_play_record(paths[1], &(test_play){&mask33, 1, 0}, 3);
    test_fails(mimus__recording_open(&recording, &(mimus_source){.paths = paths, .count = 2}, NULL),
               MIMUS_ERR_SCHEMA, "senses: 4 in ");
    ck_assert_ptr_nonnull(strstr(mimus_last_error(), "a.rec, 5 in "));
    ck_assert_ptr_null(recording);
}
END_TEST

START_TEST(opening_refuses_what_is_no_recording) {
    const char *path = test_folder_path("a.bin"), *good = test_folder_path("a.rec");
    const char *options[] = {"senses=obs", NULL};
    mimus__recording *recording = NULL;
    test_file_write(path, "nothing of note", 15);
    test_play_record(good, &(test_play){&tiny, 1, 0}, 1);
    test_fails(mimus__recording_open(&recording, &(mimus_source){.paths = &path}, NULL),
               MIMUS_ERR_ARGUMENT, "no recording is named");
    test_fails(test_recording_open(&recording, test_folder_path("no.rec")), MIMUS_ERR_IO,
               "no.rec: No such file");
    test_fails(test_recording_open(&recording, test_folder()), MIMUS_ERR_IO, "directory");
    test_fails(test_recording_open(&recording, path), MIMUS_ERR_FORMAT, "a.bin: looks like");
    const mimus_source as_rec = {.paths = &path, .count = 1, .format = "rec"};
    test_fails(mimus__recording_open(&recording, &as_rec, NULL), MIMUS_ERR_FORMAT,
               "a.bin: not a .rec file");
    test_file_write(path, "", 0);
    test_fails(mimus__recording_open(&recording, &as_rec, NULL), MIMUS_ERR_FORMAT,
               "a.bin: not a .rec file");
    const mimus_source unknown = {.paths = &path, .count = 1, .format = "nonsense"};
    test_fails(mimus__recording_open(&recording, &unknown, NULL), MIMUS_ERR_ARGUMENT,
               "no format \"nonsense\"");
    const mimus_source with_option = {.paths = &good, .count = 1, .options = options};
    test_fails(mimus__recording_open(&recording, &with_option, NULL), MIMUS_ERR_ARGUMENT,
               ".rec files have no options, but \"senses=obs\" is given");
    ck_assert_ptr_null(recording);
    mimus__recording_free(NULL);
}
END_TEST

/* ------------------------------------------------------------------ damage */

/* Chunks of 20, 20 and 3 samples in a file, whole in memory too. */
typedef struct sample_file {
    test_play play;
    uint64_t end[4]; /* of the header and the chunks */
    char *bytes;
    size_t count;
} sample_file;

enum { SAMPLES = 43 };
static const uint64_t sample_ends[] = {0, 20, 40, SAMPLES};

static sample_file make_sample_file(void) {
    sample_file f = {.play = {&mask33, 9, 8}};
    const char *path = test_folder_path("sound.rec");
    mimus_recorder *recorder = NULL;
    test_ok(mimus_recorder_open(&recorder, path, f.play.schema, MIMUS_RECORDER_CREATE));
    for (int i = 0; i < 4; i++) {
        if (i > 0)
            test_ok(test_play_append(recorder, &f.play, sample_ends[i - 1],
                                     sample_ends[i] - sample_ends[i - 1]));
        test_ok(mimus_recorder_flush(recorder));
        free(f.bytes);
        test_ok(mimus__file_read(path, 1 << 20, &f.bytes, &f.count));
        f.end[i] = f.count;
    }
    test_ok(mimus_recorder_close(recorder));
    free(f.bytes);
    test_ok(mimus__file_read(path, 1 << 20, &f.bytes, &f.count));
    return f;
}

/* Samples in the chunks that end at or before byte `end`. */
static uint64_t whole_samples(const sample_file *f, uint64_t end) {
    uint64_t samples = 0;
    for (int i = 1; i < 4; i++)
        samples = f->end[i] <= end ? sample_ends[i] : samples;
    return samples;
}

/* Touch every block; the first failure. */
static mimus_status touch_all(const mimus__recording *recording) {
    mimus_status status = MIMUS_OK;
    for (size_t b = 0; b < mimus__recording_blocks(recording) && status == MIMUS_OK; b++) {
        mimus__block block;
        status = mimus__recording_block(recording, b, &block);
    }
    return status;
}

/* A failure is one line that names the file. */
static void fails_clearly(mimus_status status, const char *path) {
    ck_assert_msg(status == MIMUS_ERR_FORMAT || status == MIMUS_ERR_UNSUPPORTED, "%s: %s",
                  mimus_status_text(status), mimus_last_error());
    ck_assert_msg(strstr(mimus_last_error(), path) == mimus_last_error(), "\"%s\"",
                  mimus_last_error());
}

/* Either it fails clearly, or what is left is a sound beginning and the rest is reported lost. */
static void is_honest(const char *path, const test_play *play, bool *failed) {
    mimus__recording *recording = NULL;
    mimus_status status = test_recording_open(&recording, path);
    if (status == MIMUS_OK)
        status = touch_all(recording);
    *failed = status != MIMUS_OK;
    if (status != MIMUS_OK) {
        fails_clearly(status, path);
    } else {
        ck_assert_uint_eq(losses(recording), 1);
        test_play_check(recording, 0, play, mimus__recording_samples(recording));
    }
    mimus__recording_free(recording);
}

START_TEST(no_flipped_bit_goes_unnoticed) {
    sample_file f = make_sample_file();
    const char *path = test_folder_path("flipped.rec");
    for (size_t i = 0; i < f.count; i++) {
        bool failed;
        const char flip = (char)(1 << i % 8);
        f.bytes[i] ^= flip;
        test_file_write(path, f.bytes, f.count);
        f.bytes[i] ^= flip;
        is_honest(path, &f.play, &failed);
        /* only the closing record can be done without */
        ck_assert_msg(failed == (i < f.end[3]), "byte %zu", i);
        if (i < 8) { /* no .rec at all by then */
            ck_assert_ptr_nonnull(strstr(mimus_last_error(), "looks like"));
        } else if (i >= f.end[0] && failed) {
            char part[64];
            const int chunk = i < f.end[1] ? 0 : i < f.end[2] ? 1 : 2;
            snprintf(part, sizeof part, "chunk %d at byte %llu: ", chunk,
                     (unsigned long long)f.end[chunk]);
            ck_assert_msg(strstr(mimus_last_error(), part) != NULL, "\"%s\"", mimus_last_error());
        }
    }
    free(f.bytes);
}
END_TEST

START_TEST(no_flipped_bit_of_an_open_file_goes_unnoticed) {
    sample_file f = make_sample_file();
    const char *path = test_folder_path("flipped.rec");
    for (size_t i = f.end[0]; i < f.end[3]; i++) {
        bool failed;
        const char flip = (char)(1 << i % 8);
        f.bytes[i] ^= flip;
        test_file_write(path, f.bytes, f.end[3]);
        f.bytes[i] ^= flip;
        is_honest(path, &f.play, &failed);
        /* what is damaged at the end was being written */
        ck_assert_msg(failed == (i < f.end[2]), "byte %zu", i);
    }
    free(f.bytes);
}
END_TEST

START_TEST(every_truncation_keeps_whole_chunks) {
    sample_file f = make_sample_file();
    const char *path = test_folder_path("cut.rec");
    for (size_t cut = 0; cut < f.count; cut++) {
        mimus__recording *recording = NULL;
        test_file_write(path, f.bytes, cut);
        if (cut < f.end[0]) {
            fails_clearly(test_recording_open(&recording, path), path);
            continue;
        }
        recording = open_one(path);
        const uint64_t samples = whole_samples(&f, cut);
        ck_assert_uint_eq(mimus__recording_samples(recording), samples);
        ck_assert_uint_eq(mimus__recording_episodes(recording), (samples + 7) / 8);
        test_play_check(recording, 0, &f.play, samples);

        uint64_t kept = f.end[0], bytes = 0;
        for (int i = 1; i < 4; i++)
            kept = f.end[i] <= cut ? f.end[i] : kept;
        ck_assert_uint_eq(losses(recording), 1);
        const json_t *loss = json_array_get(mimus__recording_losses(recording), 0);
        const char *file = NULL, *reason = NULL;
        test_ok(mimus__json_get_string(loss, "file", "loss", &file));
        test_ok(mimus__json_get_string(loss, "reason", "loss", &reason));
        test_ok(mimus__json_get_u64(loss, "bytes", "loss", &bytes));
        ck_assert_str_eq(file, path);
        ck_assert_str_eq(reason, cut > kept ? "not closed, and its last record is not whole"
                                            : "not closed");
        ck_assert_uint_eq(bytes, cut - kept);
        mimus__recording_free(recording);
    }
    free(f.bytes);
}
END_TEST

static void note(void *user, const char *text) {
    snprintf(user, 256, "%s", text);
}

START_TEST(a_loss_is_said_aloud) {
    sample_file f = make_sample_file();
    const char *path = test_folder_path("cut.rec");
    mimus__recording *recording = NULL;
    char said[256] = "";
    const mimus_watch watch = {.user = said, .on_message = note};
    test_file_write(path, f.bytes, f.end[2] + 5);
    test_ok(mimus__recording_open(&recording, &(mimus_source){.paths = &path, .count = 1}, &watch));
    ck_assert_ptr_nonnull(strstr(said, "cut.rec: not closed"));
    ck_assert_ptr_nonnull(strstr(said, "5 bytes are lost, 40 samples are there"));
    mimus__recording_free(recording);
    free(f.bytes);
}
END_TEST

/* A path is bytes, and JSON is not. */
START_TEST(a_loss_names_any_path) {
    sample_file f = make_sample_file();
    const char *path = test_folder_path("caf\xE9.rec");
    const char *file = NULL;
    test_file_write(path, f.bytes, f.end[2]);
    mimus__recording *recording = open_one(path);
    const json_t *loss = json_array_get(mimus__recording_losses(recording), 0);
    test_ok(mimus__json_get_string(loss, "file", "loss", &file));
    ck_assert_ptr_nonnull(strstr(file, "caf?.rec"));
    mimus__recording_free(recording);
    free(f.bytes);
}
END_TEST

/* --------------------------------------------------------------- hostility */

/* A copy of the sample file that can be changed with all checksums right. */
static void forge(char *bytes, size_t at) {
    mimus__record record;
    memcpy(&record, bytes + at, sizeof record);
    record.checksum = XXH3_64bits(bytes + at + sizeof record, record.bytes);
    record.header_checksum = XXH3_64bits(&record, offsetof(mimus__record, header_checksum));
    memcpy(bytes + at, &record, sizeof record);
}

/* Set a 32-bit word of the record at `at` (0 its header's first), sign it, and see it refused. */
static void forged_word(const sample_file *f, size_t at, size_t offset, uint32_t word,
                        mimus_status expected, const char *part) {
    const char *path = test_folder_path("forged.rec");
    mimus__recording *recording = NULL;
    char *bytes = malloc(f->count);
    memcpy(bytes, f->bytes, f->count);
    memcpy(bytes + at + offset, &word, sizeof word);
    if (offset != offsetof(mimus__record, bytes))
        forge(bytes, at);
    else /* the payload is not where it says: sign the header alone */
        memcpy(bytes + at + offsetof(mimus__record, header_checksum),
               &(uint64_t){XXH3_64bits(bytes + at, offsetof(mimus__record, header_checksum))}, 8);
    test_file_write(path, bytes, f->count);
    mimus_status status = test_recording_open(&recording, path);
    if (status == MIMUS_OK)
        status = touch_all(recording);
    test_fails(status, expected, part);
    fails_clearly(status, path);
    mimus__recording_free(recording);
    free(bytes);
}

START_TEST(signed_nonsense_is_refused) {
    sample_file f = make_sample_file();
    const size_t count = offsetof(mimus__record, count), flags = offsetof(mimus__record, flags),
                 bytes = offsetof(mimus__record, bytes), first = offsetof(mimus__record, first),
                 episodes = offsetof(mimus__record, episodes), header = sizeof(mimus__record);
    const size_t chunk = f.end[1], closing = f.end[3];
    const size_t starts = chunk + header + mimus__chunk_columns(&mask33, 20).starts;
    forged_word(&f, 0, count, 2, MIMUS_ERR_UNSUPPORTED, "version 2 of the format, expected 1");
    forged_word(&f, 0, flags, 4, MIMUS_ERR_UNSUPPORTED, "byte 0 has flags 0x4");
    forged_word(&f, 0, bytes, 63, MIMUS_ERR_FORMAT, "a schema of 63 bytes");
    forged_word(&f, 0, bytes, 1 << 30, MIMUS_ERR_FORMAT, "a schema of 1073741824 bytes");
    forged_word(&f, 0, bytes, 1 << 20, MIMUS_ERR_FORMAT, "ends inside its schema");
    forged_word(&f, 0, header, 0x20202020, MIMUS_ERR_FORMAT, "schema: not valid JSON");
    forged_word(&f, chunk, count, 0, MIMUS_ERR_FORMAT, "not 1 to 65536 samples");
    forged_word(&f, chunk, count, 65537, MIMUS_ERR_FORMAT, "not 1 to 65536 samples");
    forged_word(&f, chunk, count, 200, MIMUS_ERR_FORMAT, "its size does not fit the schema");
    forged_word(&f, chunk, bytes, 64, MIMUS_ERR_FORMAT, "its size does not fit the schema");
    forged_word(&f, chunk, flags, 1, MIMUS_ERR_UNSUPPORTED, "has flags 0x1");
    forged_word(&f, chunk, first, 21, MIMUS_ERR_FORMAT, "samples are missing before it");
    forged_word(&f, chunk, episodes, 21, MIMUS_ERR_FORMAT, "more episodes than samples");
    forged_word(&f, chunk, episodes, 1, MIMUS_ERR_FORMAT, "but the chunks hold 43 in 5");
    forged_word(&f, chunk, starts - chunk, 0x80000010, MIMUS_ERR_FORMAT, "behind its last sample");
    forged_word(&f, chunk, starts - chunk, 0, MIMUS_ERR_FORMAT, "episodes are miscounted");
    forged_word(&f, f.end[0], starts - chunk, 0x00020202, MIMUS_ERR_FORMAT,
                "the first sample does not begin an episode");
    forged_word(&f, closing, flags, 1, MIMUS_ERR_UNSUPPORTED, "has flags 0x1");
    forged_word(&f, closing, first, 44, MIMUS_ERR_FORMAT, "but the chunks hold 43");
    forged_word(&f, closing, header, 0x20202020, MIMUS_ERR_FORMAT,
                "closing record: not valid JSON");
    free(f.bytes);
}
END_TEST

static void forged_closing(const sample_file *f, const char *json, const char *part) {
    const char *path = test_folder_path("forged.rec");
    mimus__recording *recording = NULL;
    char *bytes = malloc(f->count);
    memcpy(bytes, f->bytes, f->count);
    const size_t payload = f->end[3] + sizeof(mimus__record);
    memset(bytes + payload, ' ', f->count - payload);
    memcpy(bytes + payload, json, strlen(json));
    forge(bytes, f->end[3]);
    test_file_write(path, bytes, f->count);
    test_fails(test_recording_open(&recording, path), MIMUS_ERR_FORMAT, part);
    fails_clearly(MIMUS_ERR_FORMAT, path);
    free(bytes);
}

START_TEST(a_false_closing_record_is_refused) {
    sample_file f = make_sample_file();
    forged_closing(&f, "{\"samples\":42,\"episodes\":6,\"metadata\":{}}", "42 samples in 6");
    forged_closing(&f, "{\"samples\":43,\"episodes\":5,\"metadata\":{}}", "43 samples in 5");
    forged_closing(&f, "{\"samples\":43,\"episodes\":6}", "\"metadata\" should be an object");
    forged_closing(&f, "{\"samples\":-1,\"episodes\":6,\"metadata\":{}}", "integer of 0 or more");
    forged_closing(&f, "[]", "\"samples\" should be");
    free(f.bytes);
}
END_TEST

START_TEST(nothing_may_follow_the_closing_record) {
    sample_file f = make_sample_file();
    const char *path = test_folder_path("two.rec");
    mimus__recording *recording = NULL;
    char *twice = malloc(2 * f.count);
    memcpy(twice, f.bytes, f.count);
    memcpy(twice + f.count, f.bytes, f.count);
    for (size_t extra = 1; extra <= f.count; extra += f.count - 1) {
        test_file_write(path, twice, f.count + extra);
        char part[64];
        snprintf(part, sizeof part, "closing record: %zu bytes behind it", extra);
        test_fails(test_recording_open(&recording, path), MIMUS_ERR_FORMAT, part);
    }
    free(twice);
    free(f.bytes);
}
END_TEST

/* ------------------------------------------------------------- fingerprint */

static void fingerprint_of(char out[17], const char *path) {
    mimus__recording *recording = open_one(path);
    snprintf(out, 17, "%s", mimus__recording_fingerprint(recording));
    ck_assert_uint_eq(strlen(out), 16);
    mimus__recording_free(recording);
}

START_TEST(the_fingerprint_is_of_the_content) {
    sample_file f = make_sample_file();
    char sound[17], open[17], cut[17], other[17], weightless[17];
    const char *path = test_folder_path("other.rec");
    fingerprint_of(sound, test_folder_path("sound.rec"));
    test_file_write(path, f.bytes, f.end[3]); /* the closing record holds no samples */
    fingerprint_of(open, path);
    ck_assert_str_eq(sound, open);
    test_file_write(path, f.bytes, f.end[2]);
    fingerprint_of(cut, path);
    ck_assert_str_ne(sound, cut);
    remove(path);
    test_play_record(path, &(test_play){&mask33, 10, 8}, SAMPLES);
    fingerprint_of(other, path);
    ck_assert_str_ne(sound, other);
    mimus_schema schema = mask33;
    schema.weights = false;
    remove(path);
    test_play_record(path, &(test_play){&schema, 9, 8}, SAMPLES);
    fingerprint_of(weightless, path);
    ck_assert_str_ne(other, weightless);
    free(f.bytes);
}
END_TEST

/* ------------------------------------------------------------------- sinks */

static mimus_status feed(mimus__sink *sink, const test_play *play, uint64_t count) {
    mimus_status status = mimus__sink_begin(sink, play->schema);
    for (uint64_t i = 0; i < count && status == MIMUS_OK; i++) {
        test_sample sample = test_play_sample(play, i);
        if (sample.begins)
            status = mimus__sink_end_episode(sink);
        if (status == MIMUS_OK)
            status = mimus__sink_append(sink, sample.senses, sample.actions, sample.legal,
                                        sample.weight);
        test_sample_free(&sample);
    }
    return status;
}

START_TEST(a_file_sink_writes_what_a_recorder_writes) {
    const test_play play = {&reference, 4, 100};
    const char *recorded = test_folder_path("recorded.rec"), *path = test_folder_path("sunk.rec");
    const uint64_t count = mimus__chunk_capacity(&reference) + 5;
    mimus__file_sink sink;
    char *want = NULL, *got = NULL;
    size_t want_bytes = 0, got_bytes = 0;
    test_play_record(recorded, &play, count);
    test_ok(mimus__file_sink_open(&sink, path));
    test_ok(feed(&sink.base.sink, &play, count));
    ck_assert(!mimus__file_exists(path));
    test_ok(mimus__file_sink_commit(&sink, NULL));
    ck_assert_uint_eq(sink.writer.samples, count);
    ck_assert_uint_eq(sink.writer.episodes, (count + 99) / 100);
    mimus__file_sink_clear(&sink);
    test_ok(mimus__file_read(recorded, 1 << 24, &want, &want_bytes));
    test_ok(mimus__file_read(path, 1 << 24, &got, &got_bytes));
    ck_assert_uint_eq(got_bytes, want_bytes);
    ck_assert_mem_eq(got, want, want_bytes);
    free(want);
    free(got);
}
END_TEST

START_TEST(a_file_sink_that_is_given_up_leaves_nothing) {
    const char *path = test_folder_path("sunk.rec");
    mimus__file_sink sink;
    test_ok(mimus__file_sink_open(&sink, path));
    test_fails(mimus__file_sink_commit(&sink, NULL), MIMUS_ERR_DATA, "sunk.rec: nothing to write");
    test_ok(feed(&sink.base.sink, &(test_play){&mask32, 1, 0}, 50));
    mimus__file_sink_clear(&sink);
    ck_assert(!mimus__file_exists(path));
    test_fails(mimus__file_sink_open(&sink, test_folder_path("no/sunk.rec")), MIMUS_ERR_IO,
               "cannot write");
    mimus__file_sink_clear(&sink);
}
END_TEST

/* Audit judges, not the sink: what a foreign file holds must come through as it is. */
START_TEST(a_sink_judges_no_sample) {
    const char *path = test_folder_path("odd.rec");
    const float senses[] = {NAN, -INFINITY, 1};
    const uint16_t actions[] = {77};
    const uint32_t mask[] = {5, 1};
    mimus_schema schema = {3, NULL, 1, head33, true, true};
    mimus__file_sink sink;
    mimus__block block;
    test_ok(mimus__file_sink_open(&sink, path));
    test_ok(mimus__sink_begin(&sink.base.sink, &schema));
    test_ok(mimus__sink_append(&sink.base.sink, senses, actions, NULL, -1));
    test_ok(mimus__chunk_sink_append_packed(&sink.base, senses, actions, mask, NAN));
    test_ok(mimus__chunk_sink_append_packed(&sink.base, senses, actions, NULL, 1));
    test_ok(mimus__file_sink_commit(&sink, NULL));
    mimus__file_sink_clear(&sink);
    mimus__recording *recording = open_one(path);
    test_ok(mimus__recording_block(recording, 0, &block));
    ck_assert_mem_eq(block.senses, senses, sizeof senses);
    ck_assert_uint_eq(block.actions[0], 77);
    ck_assert(block.weights[0] == -1 && isnan(block.weights[1]));
    const uint32_t masks[] = {UINT32_MAX, 1, 5, 1, UINT32_MAX, 1};
    ck_assert_mem_eq(block.masks, masks, sizeof masks);
    mimus__recording_free(recording);
}
END_TEST

START_TEST(a_memory_sink_holds_the_chunks_of_a_file) {
    const test_play play = {&reference, 4, 100};
    const char *path = test_folder_path("recorded.rec");
    const uint64_t count = 2 * mimus__chunk_capacity(&reference) + 5;
    mimus__memory_sink sink;
    char *file = NULL;
    size_t bytes = 0;
    mimus__scan scan;
    test_play_record(path, &play, count);
    test_ok(mimus__file_read(path, 1 << 24, &file, &bytes));
    test_ok(mimus__scan_run(&scan, (const uint8_t *)file, bytes, path));

    mimus__memory_sink_init(&sink);
    test_ok(feed(&sink.base.sink, &play, count));
    test_ok(mimus__memory_sink_finish(&sink));
    test_ok(mimus__memory_sink_finish(&sink)); /* no empty chunk */
    ck_assert_uint_eq(sink.samples, count);
    ck_assert_uint_eq(sink.chunks, scan.chunks);
    for (size_t i = 0; i < sink.chunks; i++)
        ck_assert_mem_eq(sink.chunk[i], file + scan.chunk[i].offset,
                         sizeof(mimus__record) + scan.chunk[i].record.bytes);
    mimus__memory_sink_clear(&sink);
    mimus__scan_clear(&scan);
    free(file);
}
END_TEST

START_TEST(a_memory_sink_becomes_the_recording_of_a_file) {
    const test_play play = {&reference, 4, 100};
    const char *path = test_folder_path("recorded.rec");
    const uint64_t count = mimus__chunk_capacity(&reference) + 5;
    mimus__memory_sink sink;
    mimus__recording *memory = NULL, *file = NULL;
    test_play_record(path, &play, count);
    test_ok(mimus__recording_open(&file, &(mimus_source){.paths = &path, .count = 1}, NULL));
    mimus__memory_sink_init(&sink);
    test_ok(feed(&sink.base.sink, &play, count));
    test_ok(mimus__memory_sink_recording(&memory, &sink));
    ck_assert_uint_eq(sink.chunks, 0);
    mimus__memory_sink_clear(&sink);
    ck_assert_uint_eq(mimus__recording_samples(memory), count);
    ck_assert_uint_eq(mimus__recording_episodes(memory), mimus__recording_episodes(file));
    ck_assert_str_eq(mimus__recording_fingerprint(memory), mimus__recording_fingerprint(file));
    mimus__recording_free(memory);
    mimus__recording_free(file);
}
END_TEST

START_TEST(a_sink_takes_several_files_of_one_schema) {
    mimus__memory_sink sink;
    mimus__record record;
    const test_play play = {&mask32, 1, 0};
    mimus__memory_sink_init(&sink);
    test_ok(feed(&sink.base.sink, &play, 10));
    test_ok(feed(&sink.base.sink, &play, 0));
    test_ok(feed(&sink.base.sink, &play, 10));
    test_fails(feed(&sink.base.sink, &(test_play){&mask33, 1, 0}, 1), MIMUS_ERR_SCHEMA,
               "senses: 4 in the files before, 5 in this file");
    test_ok(mimus__memory_sink_finish(&sink));
    ck_assert_uint_eq(mimus__record_read(&record, sink.chunk[0]), MIMUS__RECORD_CHUNK);
    ck_assert_uint_eq(record.count, 20);
    ck_assert_uint_eq(record.episodes, 2);
    mimus__memory_sink_clear(&sink);
}
END_TEST

/* ----------------------------------------------------------- foreign files */

enum { FOREIGN_ROWS = 9000 }; /* a chunk holds these 5 times */
static float foreign_senses[FOREIGN_ROWS][5];

static void write_foreign(const char *path) {
    static int64_t actions[FOREIGN_ROWS];
    static uint8_t starts[FOREIGN_ROWS];
    for (int i = 0; i < FOREIGN_ROWS; i++) {
        for (int s = 0; s < 5; s++)
            foreign_senses[i][s] = (float)(i * 5 + s);
        actions[i] = i % 3;
        starts[i] = i % 100 == 0;
    }
    test_npz *npz = test_npz_create(path, false);
    test_npz_add(npz, "obs", "<f4", "(9000, 5)", foreign_senses, sizeof foreign_senses);
    test_npz_add(npz, "actions", "<i8", "(9000,)", actions, sizeof actions);
    test_npz_add(npz, "episode_starts", "|u1", "(9000,)", starts, sizeof starts);
    test_npz_close(npz);
}

/* Read the files into a .rec, the way an import does. */
static void import_foreign(const char *const *paths, size_t count, const char *to) {
    mimus__file_sink sink;
    const mimus_source source = {.paths = paths, .count = count};
    test_ok(mimus__file_sink_open(&sink, to));
    for (size_t i = 0; i < count; i++)
        test_ok(mimus__sink_read(&sink.base.sink, paths[i], &source, NULL));
    test_ok(mimus__file_sink_commit(&sink, NULL));
    mimus__file_sink_clear(&sink);
}

START_TEST(a_foreign_file_is_the_same_recording_as_its_import) {
    const char *path = test_folder_path("play.npz"), *to = test_folder_path("play.rec");
    const char *paths[] = {path, path, path, path, path, path};
    mimus__recording *foreign = NULL;
    write_foreign(path);
    import_foreign(paths, 6, to);
    test_ok(mimus__recording_open(&foreign, &(mimus_source){.paths = paths, .count = 6}, NULL));
    mimus__recording *imported = open_one(to);
    ck_assert_uint_eq(mimus__recording_samples(foreign), 6 * FOREIGN_ROWS);
    ck_assert_uint_eq(mimus__recording_episodes(foreign), 6 * FOREIGN_ROWS / 100);
    ck_assert_uint_eq(mimus__recording_blocks(foreign), 2);
    ck_assert_str_eq(mimus__recording_fingerprint(foreign), mimus__recording_fingerprint(imported));
    test_ok(touch_all(imported));
    for (size_t b = 0; b < mimus__recording_blocks(foreign); b++) {
        mimus__block one, other;
        test_ok(mimus__recording_block(foreign, b, &one));
        test_ok(mimus__recording_block(imported, b, &other));
        ck_assert_uint_eq(one.samples, other.samples);
        ck_assert_mem_eq(one.senses, other.senses, one.samples * sizeof *foreign_senses);
    }
    mimus__recording_free(foreign);
    mimus__recording_free(imported);
}
END_TEST

START_TEST(foreign_files_and_recordings_keep_their_order) {
    const char *npz = test_folder_path("play.npz"), *rec = test_folder_path("play.rec");
    const char *paths[] = {npz, rec, rec, npz, npz};
    mimus__recording *recording = NULL;
    uint64_t row = 0;
    write_foreign(npz);
    import_foreign(&npz, 1, rec);
    test_ok(mimus__recording_open(&recording, &(mimus_source){.paths = paths, .count = 5}, NULL));
    ck_assert_uint_eq(mimus__recording_samples(recording), 5 * FOREIGN_ROWS);
    ck_assert_uint_eq(json_array_size(mimus__recording_metadata(recording)), 5);
    for (size_t b = 0; b < mimus__recording_blocks(recording); b++) {
        mimus__block block;
        test_ok(mimus__recording_block(recording, b, &block));
        ck_assert_uint_eq(block.first, row);
        for (uint32_t i = 0; i < block.samples; i++, row++) {
            const uint64_t in_file = row % FOREIGN_ROWS;
            if (memcmp(block.senses + i * 5, foreign_senses[in_file], sizeof *foreign_senses) != 0)
                ck_abort_msg("row %llu: other senses", (unsigned long long)row);
            if ((block.starts[i / 32] >> i % 32 & 1) != (in_file % 100 == 0))
                ck_abort_msg("row %llu: another episode start", (unsigned long long)row);
        }
    }
    ck_assert_uint_eq(row, 5 * FOREIGN_ROWS);
    mimus__recording_free(recording);
}
END_TEST

START_TEST(foreign_files_that_do_not_fit_are_named) {
    const char *paths[] = {test_folder_path("a.rec"), test_folder_path("play.npz")};
    mimus__recording *recording = NULL;
    write_foreign(paths[1]);
    test_play_record(paths[0], &(test_play){&mask32, 1, 0}, 3);
    test_fails(mimus__recording_open(&recording, &(mimus_source){.paths = paths, .count = 2}, NULL),
               MIMUS_ERR_SCHEMA, "play.npz");
    ck_assert_ptr_null(recording);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("recording");
    TCase *tests = tcase_create("recording");
    tcase_add_checked_fixture(tests, NULL, test_folder_remove);
    tcase_add_test(tests, every_shape_comes_back);
    tcase_add_test(tests, chunk_boundaries_come_back);
    tcase_add_test(tests, wide_samples_come_back);
    tcase_add_test(tests, chunks_are_about_a_mebibyte);
    tcase_add_test(tests, several_files_are_one_recording);
    tcase_add_test(tests, files_that_disagree_are_named);
    tcase_add_test(tests, opening_refuses_what_is_no_recording);
    tcase_add_test(tests, no_flipped_bit_goes_unnoticed);
    tcase_add_test(tests, no_flipped_bit_of_an_open_file_goes_unnoticed);
    tcase_add_test(tests, every_truncation_keeps_whole_chunks);
    tcase_add_test(tests, a_loss_is_said_aloud);
    tcase_add_test(tests, a_loss_names_any_path);
    tcase_add_test(tests, signed_nonsense_is_refused);
    tcase_add_test(tests, a_false_closing_record_is_refused);
    tcase_add_test(tests, nothing_may_follow_the_closing_record);
    tcase_add_test(tests, the_fingerprint_is_of_the_content);
    tcase_add_test(tests, a_file_sink_writes_what_a_recorder_writes);
    tcase_add_test(tests, a_file_sink_that_is_given_up_leaves_nothing);
    tcase_add_test(tests, a_sink_judges_no_sample);
    tcase_add_test(tests, a_memory_sink_holds_the_chunks_of_a_file);
    tcase_add_test(tests, a_memory_sink_becomes_the_recording_of_a_file);
    tcase_add_test(tests, a_sink_takes_several_files_of_one_schema);
    tcase_add_test(tests, a_foreign_file_is_the_same_recording_as_its_import);
    tcase_add_test(tests, foreign_files_and_recordings_keep_their_order);
    tcase_add_test(tests, foreign_files_that_do_not_fit_are_named);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
