/* Reading tables of text: columns, headers, labels that are words, what tables in the wild have,
 * and what is refused. */
#include "capture.h"
#include "support.h"

#include "file.h"
#include "selection.h"
#include "sink.h"
#include "text_labels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static const char *const *options_of(const char *const *options) {
    return options;
}
#define OPTIONS(...) options_of((const char *const[]){__VA_ARGS__, NULL})

static char messages[2048]; /* all that the watch was given */

static void keep_message(void *user, const char *text) {
    (void)user;
    size_t length = strlen(messages);
    snprintf(messages + length, sizeof messages - length, "%s\n", text);
}

static const mimus_watch watch = {.on_message = keep_message};

static void begin(void) {
    messages[0] = '\0';
}

static void clean(void) {
    test_folder_remove();
}

/* Write the text and read it. */
static mimus_status read_text(test_capture *capture, const char *name, const char *text,
                              const char *const *options) {
    mimus_status status = MIMUS_OK;
    const char *path = test_folder_path(name);
    const mimus__reader *reader = NULL;
    test_file_write(path, text, strlen(text));
    MIMUS_TRY(mimus__reader_find(&reader, NULL, path));
    MIMUS_TRY(mimus__reader_check(reader, options));
    MIMUS_TRY(reader->read(path, options, &capture->sink, &watch));
out:
    return status;
}

static test_capture must_read(const char *text, const char *const *options) {
    test_capture capture = test_capture_new();
    test_ok(read_text(&capture, "play.csv", text, options));
    return capture;
}

static void must_fail(const char *text, const char *const *options, mimus_status expected,
                      const char *part) {
    test_capture capture = test_capture_new();
    test_fails(read_text(&capture, "bad.csv", text, options), expected, part);
    ck_assert_msg(strstr(mimus_last_error(), "bad.csv") != NULL, "%s", mimus_last_error());
    test_capture_free(&capture);
}

/* The senses and labels of a capture as "1 2>0; 3 4>1|": '|' where an episode ends, '-' for no
 * label, 'n' for a NaN. */
static const char *shown(const test_capture *c) {
    static char text[1024];
    size_t length = 0;
    const uint32_t S = c->schema->senses, H = c->schema->heads;
    for (size_t i = 0; i < c->samples; i++) {
        for (uint32_t s = 0; s < S; s++) {
            float value = c->senses[i * S + s];
            length +=
                (size_t)(isnan(value) ? snprintf(text + length, 16, "n%s", s + 1 < S ? " " : "")
                                      : snprintf(text + length, 16, "%g%s", (double)value,
                                                 s + 1 < S ? " " : ""));
        }
        for (uint32_t h = 0; h < H; h++) {
            uint16_t label = c->actions[i * H + h];
            length += (size_t)(label == MIMUS_NO_LABEL ? snprintf(text + length, 16, ">-")
                                                       : snprintf(text + length, 16, ">%u", label));
        }
        length += (size_t)snprintf(text + length, 16, "%s", c->ends[i] ? "|" : "; ");
    }
    return text;
}

static void check(const char *table, const char *const *options, const char *expected) {
    test_capture c = must_read(table, options);
    ck_assert_str_eq(shown(&c), expected);
    test_capture_free(&c);
}

START_TEST(a_header_names_senses_and_heads) {
    test_capture c = must_read("x,y,action\n1,2,0\n3.5,-4e1,2\n", NULL);
    ck_assert_str_eq(shown(&c), "1 2>0; 3.5 -40>2|");
    ck_assert_str_eq(c.schema->sense_names[0], "x");
    ck_assert_str_eq(c.schema->sense_names[1], "y");
    ck_assert_str_eq(c.schema->head[0].name, "action");
    ck_assert_uint_eq(c.schema->head[0].actions, 3);
    ck_assert(!c.schema->masks && !c.schema->weights);
    ck_assert_ptr_nonnull(strstr(messages, "by the labels: 3"));
    test_capture_free(&c);
}
END_TEST

START_TEST(without_a_header_the_last_column_is_the_label) {
    test_capture c = must_read("1,2,0\n3,4,1\n", NULL);
    ck_assert_str_eq(shown(&c), "1 2>0; 3 4>1|");
    ck_assert_ptr_null(c.schema->sense_names);
    ck_assert_str_eq(c.schema->head[0].name, "head0");
    ck_assert_ptr_nonnull(strstr(messages, "the last, column 2, is taken for it"));
    test_capture_free(&c);
    check("0,1,2\n1,3,4\n", OPTIONS("actions=0"), "1 2>0; 3 4>1|");
}
END_TEST

START_TEST(headers_are_told_from_rows) {
    check("1,2,left\n3,4,right\n", NULL, "1 2>0; 3 4>1|");        /* a word is no header */
    check("2019,b,label\n1,2,0\n3,4,1\n", NULL, "1 2>0; 3 4>1|"); /* nor a number a row */
    check("0,1,2\n1,2,0\n3,4,1\n", OPTIONS("header=yes"), "1 2>0; 3 4>1|");
    check("1,a\n2,b\n3,a\n", OPTIONS("header=yes"), "2>1; 3>0|");
    must_fail("x,action\n1,0\n", OPTIONS("header=no"), MIMUS_ERR_DATA,
              "line 1, column 0: \"x\" is no number");
}
END_TEST

START_TEST(columns_are_chosen_in_many_ways) {
    const char *table = "ray_0,ray_1,hp,move,fire\n1,2,3,0,1\n4,5,6,1,0\n";
    check(table, OPTIONS("actions=move,fire"), "1 2 3>0>1; 4 5 6>1>0|");
    check(table, OPTIONS("actions=-2,-1", "senses=ray_*"), "1 2>0>1; 4 5>1>0|");
    check(table, OPTIONS("actions=3", "senses=hp,0"), "3 1>0; 6 4>1|");
    check(table, OPTIONS("actions=3:", "senses=:3"), "1 2 3>0>1; 4 5 6>1>0|");
    check(table, OPTIONS("actions=fire", "senses=1:-2"), "2 3>1; 5 6>0|");
    must_fail(table, OPTIONS("actions=jump"), MIMUS_ERR_ARGUMENT,
              "option actions: no column \"jump\"; there are ray_0, ray_1, hp, move, fire");
    must_fail(table, OPTIONS("actions=5"), MIMUS_ERR_ARGUMENT, "no column \"5\"");
    must_fail(table, OPTIONS("actions=-6"), MIMUS_ERR_ARGUMENT, "no column \"-6\"");
    must_fail(table, OPTIONS("actions=2:2"), MIMUS_ERR_ARGUMENT, "no column \"2:2\"");
    must_fail(table, OPTIONS("actions=ra*y"), MIMUS_ERR_ARGUMENT, "no column \"ra*y\"");
    must_fail(table, OPTIONS("actions="), MIMUS_ERR_ARGUMENT, "option actions: of 5 columns none");
    must_fail(table, OPTIONS("actions=move", "senses=0:5"), MIMUS_ERR_ARGUMENT,
              "column 3 \"move\" is a sense and an action");
    must_fail("a,a,b\n1,2,0\n3,4,1\n", OPTIONS("actions=b", "senses=a"), MIMUS_ERR_ARGUMENT,
              "2 columns are called \"a\"");
    must_fail("1,2,0\n3,4,1\n", OPTIONS("actions=move"), MIMUS_ERR_ARGUMENT,
              "no column \"move\"; there are 0 to 2, without names");
}
END_TEST

START_TEST(words_are_actions_sorted) {
    test_capture c = must_read("x,action\n1,stay\n2,left\n3,\n4,stay\n5,fire\n", NULL);
    ck_assert_str_eq(shown(&c), "1>2; 2>1; 3>-; 4>2; 5>0|");
    ck_assert_uint_eq(c.schema->head[0].actions, 3);
    ck_assert_str_eq(c.schema->head[0].action_names[0], "fire");
    ck_assert_str_eq(c.schema->head[0].action_names[1], "left");
    ck_assert_str_eq(c.schema->head[0].action_names[2], "stay");
    test_capture_free(&c);

    c = must_read("x,action\n1,stay\n2,left\n3,2\n", OPTIONS("heads=move:stay|left|fire"));
    ck_assert_str_eq(shown(&c), "1>0; 2>1; 3>2|"); /* numbers go on being numbers */
    ck_assert_str_eq(c.schema->head[0].name, "move");
    ck_assert_str_eq(c.schema->head[0].action_names[2], "fire");
    test_capture_free(&c);

    must_fail("x,action\n1,stay\n2,jump\n", OPTIONS("heads=stay|left"), MIMUS_ERR_DATA,
              "line 3, column 1 \"action\": \"jump\" is none of the head's actions");
    must_fail("x,action\n1,stay\n2,left\n", OPTIONS("heads=2"), MIMUS_ERR_DATA,
              "line 2, column 1 \"action\": \"stay\" is no number; the option heads names actions");
    must_fail("x,action\n1,stay\n2,0.5\n", NULL, MIMUS_ERR_DATA,
              "the label in line 2 is the word \"stay\", and that in line 3 the number 0.5");
    must_fail("x,action\n1,0.5\n2,stay\n", NULL, MIMUS_ERR_DATA,
              "the label in line 3 is the word \"stay\", and that in line 2 the number 0.5");
    must_fail("x,action\n1,stay\n2,stay\n", NULL, MIMUS_ERR_DATA,
              "every label is \"stay\": nothing to choose");
}
END_TEST

START_TEST(labels_that_are_missing_are_none) {
    check("x,action\n1,0\n2,\n3,-1\n4,nan\n5,1.0\n", NULL, "1>0; 2>-; 3>-; 4>-; 5>1|");
    test_capture c = must_read("x,action\n1,-2\n2,70000\n3,1\n", OPTIONS("heads=2"));
    ck_assert_uint_eq(c.actions[0], MIMUS__MAX_ACTIONS); /* for the audit to find */
    ck_assert_uint_eq(c.actions[1], MIMUS__MAX_ACTIONS);
    test_capture_free(&c);
    must_fail("x,action\n1,70000\n", NULL, MIMUS_ERR_DATA, "head 0 has a label of 70000");
    must_fail("x,action\n1,0\n2,0.25\n", NULL, MIMUS_ERR_UNSUPPORTED,
              "actions: line 3, column 1: 0.25 is not an integer; the option bin");
    must_fail("x,action\n1,0\n2,0.25\n", OPTIONS("heads=3"), MIMUS_ERR_UNSUPPORTED,
              "line 3, column 1 \"action\": 0.25 is not an integer; the option bin");
}
END_TEST

START_TEST(senses_that_are_missing_are_nan) {
    check("x,y,action\n,2,0\nNA,True,1\nnull,false,1\n", NULL, "n 2>0; n 1>1; n 0>1|");
    test_capture c = must_read("x,action\ninf,0\n-Infinity,1\n1e39,1\n", NULL);
    ck_assert(isinf(c.senses[0]) && isinf(c.senses[1]) && isinf(c.senses[2]));
    test_capture_free(&c);
    must_fail("x,y,action\n1,2,0\n1,2x,0\n", NULL, MIMUS_ERR_DATA,
              "bad.csv: line 3, column 1 \"y\": \"2x\" is no number");
    must_fail("x,when,action\n1,2019-01-02,0\n", NULL, MIMUS_ERR_DATA,
              "line 2, column 1 \"when\": \"2019-01-02\" is no number; the option senses");
    must_fail("x,y,action\n1,0,5,0\n2,0,5,1\n", OPTIONS("separator=;"), MIMUS_ERR_ARGUMENT,
              "of 1 columns none is left");
}
END_TEST

START_TEST(episodes_are_found) {
    const char *table = "episode,x,done,action\n7,1,0,0\n7,2,1,1\n7,3,0,0\nb,4,0,1\nb,5,0,1\n";
    check(table, NULL, "1>0; 2>1; 3>0|4>1; 5>1|");
    check(table, OPTIONS("dones=done", "senses=x"), "1>0; 2>1|3>0; 4>1; 5>1|");
    check(table, OPTIONS("episode=", "senses=x"), "1>0; 2>1|3>0; 4>1; 5>1|");
    check(table, OPTIONS("episode=", "dones=", "senses=x"), "1>0; 2>1; 3>0; 4>1; 5>1|");
    check(table, OPTIONS("starts=done", "senses=x"), "1>0|2>1; 3>0; 4>1; 5>1|");
    check("x,terminated,truncated,action\n1,True,False,0\n2,False,True,1\n3,False,,1\n", NULL,
          "1>0|2>1|3>1|");
    must_fail(table, OPTIONS("dones=done", "episode=0"), MIMUS_ERR_ARGUMENT, "give one");
    check("reward,x,Step,action\n7,1,0,0\n7,2,1,1\n", NULL, "1>0; 2>1|");
    ck_assert_ptr_nonnull(strstr(messages, "not among the senses: reward, Step"));
}
END_TEST

START_TEST(masks_and_weights) {
    const char *table = "x,action_mask_0,action_mask_1,action_mask_2,weight,action\n"
                        "1,1,0,1,0.5,2\n2,0,9,0,2,1\n3,1,,0,,0\n";
    test_capture c = must_read(table, NULL);
    static const uint8_t legal[] = {1, 0, 1, 0, 1, 0, 1, 0, 0};
    ck_assert_str_eq(shown(&c), "1>2; 2>1; 3>0|");
    ck_assert(c.schema->masks && c.schema->weights);
    ck_assert_mem_eq(c.legal, legal, sizeof legal);
    ck_assert_float_eq(c.weights[0], 0.5F);
    ck_assert(isnan(c.weights[2])); /* a fault, for the audit to find */
    test_capture_free(&c);
    c = must_read(table, OPTIONS("masks=", "weights=", "senses=x"));
    ck_assert(!c.schema->masks && !c.schema->weights);
    test_capture_free(&c);
    must_fail(table, OPTIONS("heads=2"), MIMUS_ERR_ARGUMENT, "the masks are 3 wide");
    must_fail(table, OPTIONS("weights=1,2"), MIMUS_ERR_ARGUMENT,
              "option weights: 2 columns; at most 1");
}
END_TEST

START_TEST(tables_in_the_wild) {
    /* Windows line ends, blank lines, a byte order mark */
    check("\xEF\xBB\xBFx,action\r\n1,0\r\n\r\n2,1\r\n", NULL, "1>0; 2>1|");
    /* the old Mac's, and quotes with separators, line ends and quotes in them */
    check("x,action\r1,0\r2,1\r", NULL, "1>0; 2>1|");
    check("\"x, \"\"the\n first\"\"\",action\n\" 1 \",\"a\nb\"\n2,c\n", NULL, "1>0; 2>1|");
    /* semicolons, tabs, bars; spaces around */
    check("x;y;action\n1; 2 ;0\n3;4;1\n", NULL, "1 2>0; 3 4>1|");
    check("x\ty\taction\n1\t2\t0\n3\t4\t1\n", NULL, "1 2>0; 3 4>1|");
    check("x|y|action\n1|2|0\n3|4|1\n", NULL, "1 2>0; 3 4>1|");
    check("x:y:action\n1:2:0\n3:4:1\n", OPTIONS("separator=:"), "1 2>0; 3 4>1|");
    /* a name that is not UTF-8 */
    test_capture c = must_read("h\xF6he,action\n1,0\n2,1\n", NULL);
    ck_assert_str_eq(c.schema->sense_names[0], "h?he");
    test_capture_free(&c);
}
END_TEST

START_TEST(rows_may_have_one_field_more_than_the_header) {
    /* R's row names come first and are no sense */
    test_capture c = must_read("x,action\na,1,0\nb,2,1\n", NULL);
    ck_assert_str_eq(shown(&c), "1>0; 2>1|");
    ck_assert_str_eq(c.schema->sense_names[0], "x");
    ck_assert_ptr_nonnull(strstr(messages, "the first is taken for the row's own name"));
    test_capture_free(&c);
    /* pandas' index has a name of no letters */
    check(",x,action\n0,1,0\n1,2,1\n", NULL, "1>0; 2>1|");
    /* separators at the ends of rows */
    check("x,action\n1,0,\n2,1,\n3,1\n", NULL, "1>0; 2>1; 3>1|");
    must_fail("x,action\n1,0,\n2,1,7\n", NULL, MIMUS_ERR_FORMAT, "line 3 has 3 fields; expected 2");
    must_fail("x,action\n1,0,3,4\n", NULL, MIMUS_ERR_FORMAT,
              "line 2 has 4 fields, and the header 2 names");
}
END_TEST

START_TEST(a_last_row_that_was_cut_is_left_out) {
    check("action,x,y\n0,1,2\n1,3,4\n1,5", NULL, "1 2>0; 3 4>1|");
    ck_assert_ptr_nonnull(strstr(messages, "line 4: the last row is cut short, and left out"));
    check("action,x,y\n0,1,2\n1,3,4\n1,5,6e-", NULL, "1 2>0; 3 4>1|");
    messages[0] = '\0';
    check("action,x,y\n0,1,2\n1,3,4\n1,5,6", NULL, "1 2>0; 3 4>1; 5 6>1|"); /* whole */
    ck_assert_ptr_null(strstr(messages, "cut"));
    must_fail("action,x,y\n0,1,2\n1,3\n1,5,6\n", NULL, MIMUS_ERR_FORMAT,
              "bad.csv: line 3 has 2 fields; expected 3");
    must_fail("action,x,y\n0,1,2\n1,3\n", NULL, MIMUS_ERR_FORMAT, "line 3 has 2 fields");
}
END_TEST

START_TEST(what_is_no_table_is_refused) {
    static char longest[300000];
    must_fail("", NULL, MIMUS_ERR_DATA, "bad.csv: is empty");
    must_fail("\n\n", NULL, MIMUS_ERR_DATA, "bad.csv: no rows");
    must_fail("x,action\n", OPTIONS("header=yes"), MIMUS_ERR_DATA, "no rows behind the header");
    must_fail("x,action\n1,\"0\n2,1\n", NULL, MIMUS_ERR_FORMAT,
              "line 2: a quote that is opened in this row is never closed");
    must_fail("x,action\n1,0\n", OPTIONS("separator=ab"), MIMUS_ERR_ARGUMENT,
              "option separator: \"ab\" should be one character, or tab");
    must_fail("x,action\n1,0\n", OPTIONS("header=1"), MIMUS_ERR_ARGUMENT,
              "option header: \"1\" should be yes or no");
    must_fail("\xFF\xFEx\1", NULL, MIMUS_ERR_UNSUPPORTED, "UTF-16");
    memset(longest, 'a', sizeof longest - 1);
    must_fail(longest, NULL, MIMUS_ERR_FORMAT, "line 1: a field of more than 64 KiB");
    const char *path = test_folder_path("nul.csv");
    test_capture capture = test_capture_new();
    const char *const csv[] = {"header=no", NULL};
    test_file_write(path, "1,2\n3,\0004\n", 9);
    const mimus__reader *reader = NULL;
    test_ok(mimus__reader_find(&reader, "csv", path));
    test_fails(reader->read(path, csv, &capture.sink, NULL), MIMUS_ERR_FORMAT,
               "nul.csv: holds NUL bytes");
    test_capture_free(&capture);
}
END_TEST

/* -------------------------------------------------------------------- gzip */

static void write_gzip(const char *path, const char *text, size_t bytes) {
    gzFile file = gzopen(path, "wb9");
    ck_assert_int_eq(gzwrite(file, text, (unsigned)bytes), (int)bytes);
    ck_assert_int_eq(gzclose(file), Z_OK);
}

static mimus_status read_path(test_capture *capture, const char *path) {
    mimus_status status = MIMUS_OK;
    const mimus__reader *reader = NULL;
    MIMUS_TRY(mimus__reader_find(&reader, NULL, path));
    MIMUS_TRY(reader->read(path, NULL, &capture->sink, &watch));
out:
    return status;
}

START_TEST(gzipped_tables_are_read_and_damaged_ones_refused) {
    const char *path = test_folder_path("play.csv.gz");
    static char table[20000];
    size_t length = (size_t)snprintf(table, sizeof table, "x,action\n");
    char *content = NULL;
    size_t bytes = 0;
    for (int i = 0; i < 1000; i++)
        length += (size_t)snprintf(table + length, sizeof table - length, "%d,%d\n",
                                   i * 7919 % 1009, i % 3);
    write_gzip(path, table, length);
    test_capture c = test_capture_new();
    test_ok(read_path(&c, path));
    ck_assert_uint_eq(c.samples, 1000);
    ck_assert_float_eq(c.senses[999], 999 * 7919 % 1009);
    test_capture_free(&c);

    test_ok(mimus__file_read(path, 1 << 20, &content, &bytes));
    test_file_write(path, content, bytes / 2);
    c = test_capture_new();
    test_fails(read_path(&c, path), MIMUS_ERR_FORMAT, "the gzip data ends early");
    test_capture_free(&c);
    test_file_write(path, content, bytes - 4); /* but for the length at the end */
    c = test_capture_new();
    test_fails(read_path(&c, path), MIMUS_ERR_FORMAT, "the gzip data ends early");
    test_capture_free(&c);
    content[bytes - 6] = (char)~content[bytes - 6]; /* in the checksum */
    test_file_write(path, content, bytes);
    c = test_capture_new();
    test_fails(read_path(&c, path), MIMUS_ERR_FORMAT, "damaged gzip data");
    test_capture_free(&c);
    free(content);
}
END_TEST

/* Many MiB of one letter, of separators, of line ends, in some KiB of gzip. */
START_TEST(bombs_end_in_a_line) {
    enum { PIECE = 1 << 20, PIECES = 24 };
    static const struct {
        char letter;
        mimus_status status;
        const char *part;
    } cases[] = {{'7', MIMUS_ERR_FORMAT, "line 1: a field of more than 64 KiB"},
                 {',', MIMUS_ERR_FORMAT, "line 1: a row of more than 2 million fields"},
                 {'\n', MIMUS_ERR_DATA, "no rows"}};
    const char *path = test_folder_path("bomb.csv.gz");
    char *piece = malloc(PIECE);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memset(piece, cases[i].letter, PIECE);
        gzFile file = gzopen(path, "wb1");
        for (int p = 0; p < PIECES; p++)
            ck_assert_int_eq(gzwrite(file, piece, PIECE), PIECE);
        ck_assert_int_eq(gzclose(file), Z_OK);
        test_capture c = test_capture_new();
        test_fails(read_path(&c, path), cases[i].status, cases[i].part);
        test_capture_free(&c);
    }
    free(piece);
}
END_TEST

/* -------------------------------------------------------------------- bins */

START_TEST(continuous_columns_become_bins) {
    const char *path = test_folder_path("drive.csv");
    const char *options[] = {"actions=steer,gear", "bin=steer:uniform:4", NULL};
    const mimus_source source = {.paths = &path, .count = 1, .options = options};
    static const uint16_t steer[] = {0, 2, MIMUS_NO_LABEL, 3};
    const char *table = "x,steer,gear\n1,-1,first\n2,0,second\n3,,first\n4,1,second\n";
    mimus__recording *recording = NULL;
    mimus__block block;
    test_file_write(path, table, strlen(table));
    test_ok(mimus__recording_open(&recording, &source, NULL));
    const mimus_schema *schema = mimus__recording_schema(recording);
    ck_assert_uint_eq(schema->head[0].actions, 4);
    ck_assert_float_eq(schema->head[0].bin_values[3], 0.75F);
    ck_assert_str_eq(schema->head[1].action_names[1], "second");
    test_ok(mimus__recording_block(recording, 0, &block));
    for (uint32_t i = 0; i < 4; i++) {
        ck_assert_uint_eq(block.actions[i * 2], steer[i]);
        ck_assert_uint_eq(block.actions[i * 2 + 1], i % 2);
    }
    mimus__recording_free(recording);
    options[1] = "bin=gear:uniform:4";
    test_fails(mimus__recording_open(&recording, &source, NULL), MIMUS_ERR_DATA,
               "drive.csv: line 2, column 2 \"gear\": \"first\" is no number");
    options[2] = "heads=steer:l|r,gear:first|second";
    options[1] = "bin=steer:uniform:2";
    const char *all[] = {options[0], options[1], options[2], NULL};
    const mimus_source named = {.paths = &path, .count = 1, .options = all};
    test_fails(mimus__recording_open(&recording, &named, NULL), MIMUS_ERR_ARGUMENT,
               "names for the actions of head 0, and the option bin makes bins of it");
}
END_TEST

/* ------------------------------------------------------------------- judged */

static mimus_status open_like(mimus__recording **out, const char *text, const mimus_schema *like) {
    const char *path = test_folder_path("judged.csv");
    test_file_write(path, text, strlen(text));
    return mimus__recording_open_like(out, &(mimus_source){.paths = &path, .count = 1}, like, NULL);
}

/* A file that is to be judged need not have every word or label that the policy knows. */
START_TEST(who_judges_knows_the_heads) {
    mimus__recording *known = NULL, *judged = NULL;
    mimus__block block;
    test_ok(open_like(&known, "x,action\n1,stay\n2,left\n3,fire\n", NULL));
    const mimus_schema *like = mimus__recording_schema(known);
    test_ok(open_like(&judged, "x,action\n1,stay\n2,stay\n3,fire\n", like));
    test_ok(mimus__schema_match(like, "known", mimus__recording_schema(judged), "judged", true));
    test_ok(mimus__recording_block(judged, 0, &block));
    ck_assert(block.actions[0] == 2 && block.actions[1] == 2 && block.actions[2] == 0);
    mimus__recording_free(judged);
    test_fails(open_like(&judged, "x,action\n1,jump\n", like), MIMUS_ERR_DATA,
               "\"jump\" is none of the head's actions");
    mimus__recording_free(known);

    test_ok(open_like(&known, "x,action\n1,0\n2,7\n", NULL));
    test_ok(open_like(&judged, "x,action\n1,0\n2,1\n", mimus__recording_schema(known)));
    ck_assert_uint_eq(mimus__recording_schema(judged)->head[0].actions, 8);
    mimus__recording_free(judged);
    mimus__recording_free(known);
}
END_TEST

/* scikit-learn's digits: the counts are those of sklearn.datasets.load_digits. */
START_TEST(digits_import) {
    const char *path = MIMUS_SHARED_DATA "/digits/digits.csv.gz";
    static const size_t labels[10] = {178, 182, 177, 183, 181, 182, 181, 179, 174, 180};
    size_t counts[10] = {0};
    if (!mimus__file_exists(path)) {
        printf("%s is not here: not tested\n", path);
        return;
    }
    test_capture c = test_capture_new();
    test_ok(read_path(&c, path));
    ck_assert_uint_eq(c.samples, 1797);
    ck_assert_uint_eq(c.schema->senses, 64);
    ck_assert_uint_eq(c.schema->heads, 1);
    ck_assert_uint_eq(c.schema->head[0].actions, 10);
    for (size_t i = 0; i < c.samples * 64; i++)
        ck_assert(c.senses[i] >= 0 && c.senses[i] <= 16);
    for (size_t i = 0; i < c.samples; i++)
        counts[c.actions[i]]++;
    ck_assert_mem_eq(counts, labels, sizeof counts);
    test_capture_free(&c);
}
END_TEST

/* ------------------------------------------------------------------- parts */

START_TEST(words_have_limits) {
    mimus__text_labels labels = {.largest = -1};
    char word[300];
    for (unsigned i = 0; i < 3000; i++) { /* in a jumble, and all of them are found again */
        snprintf(word, sizeof word, "w%u", i * 7919 % 3001);
        test_ok(mimus__text_labels_add(&labels, word, i, "here"));
    }
    ck_assert_uint_eq(labels.count, 3000);
    for (size_t i = 1; i < labels.count; i++)
        ck_assert_int_lt(strcmp(labels.words[i - 1], labels.words[i]), 0);
    memset(word, 'a', sizeof word);
    word[256] = '\0';
    test_fails(mimus__text_labels_add(&labels, word, 5, "here"), MIMUS_ERR_DATA,
               "here: line 5: more than 65534 different labels, or one of more than 255 bytes");
    test_fails(mimus__text_labels_add(&labels, "h\xF6", 5, "here"), MIMUS_ERR_DATA, "not UTF-8");
    mimus__text_labels_clear(&labels);
}
END_TEST

START_TEST(names_of_columns_are_listed_as_far_as_they_go) {
    static const char *const names[] = {"alpha", "beta", "gamma", "delta"};
    mimus__table_columns columns = {.where = "here", .names = names, .count = 4};
    char text[40];
    ck_assert_str_eq(mimus__table_columns_text(&columns, text, sizeof text),
                     "alpha, beta, gamma and 1 more");
    columns.names = NULL;
    ck_assert_str_eq(mimus__table_columns_text(&columns, text, sizeof text),
                     "0 to 3, without names");
}
END_TEST

static bool should_stop(void *user) {
    (void)user;
    return true;
}

START_TEST(stopping_stops) {
    static char table[40000] = "x,action\n";
    size_t length = strlen(table);
    for (int i = 0; i < 5000; i++)
        length += (size_t)snprintf(table + length, sizeof table - length, "%d,%d\n", i % 10, i % 2);
    const char *path = test_folder_path("long.csv");
    test_file_write(path, table, length);
    test_capture c = test_capture_new();
    const mimus__reader *reader = NULL;
    const mimus_watch stopping = {.should_stop = should_stop};
    test_ok(mimus__reader_find(&reader, NULL, path));
    test_fails(reader->read(path, NULL, &c.sink, &stopping), MIMUS_ERR_STOPPED, "stopped");
    test_capture_free(&c);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("csv");
    TCase *tests = tcase_create("csv");
    tcase_add_checked_fixture(tests, begin, clean);
    tcase_add_test(tests, a_header_names_senses_and_heads);
    tcase_add_test(tests, without_a_header_the_last_column_is_the_label);
    tcase_add_test(tests, headers_are_told_from_rows);
    tcase_add_test(tests, columns_are_chosen_in_many_ways);
    tcase_add_test(tests, words_are_actions_sorted);
    tcase_add_test(tests, labels_that_are_missing_are_none);
    tcase_add_test(tests, senses_that_are_missing_are_nan);
    tcase_add_test(tests, episodes_are_found);
    tcase_add_test(tests, masks_and_weights);
    tcase_add_test(tests, tables_in_the_wild);
    tcase_add_test(tests, rows_may_have_one_field_more_than_the_header);
    tcase_add_test(tests, a_last_row_that_was_cut_is_left_out);
    tcase_add_test(tests, what_is_no_table_is_refused);
    tcase_add_test(tests, gzipped_tables_are_read_and_damaged_ones_refused);
    tcase_add_test(tests, bombs_end_in_a_line);
    tcase_add_test(tests, continuous_columns_become_bins);
    tcase_add_test(tests, who_judges_knows_the_heads);
    tcase_add_test(tests, digits_import);
    tcase_add_test(tests, words_have_limits);
    tcase_add_test(tests, names_of_columns_are_listed_as_far_as_they_go);
    tcase_add_test(tests, stopping_stops);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
