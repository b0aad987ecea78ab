#include "bench_page.h"

#include "page.h"

#include "file.h"

#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------------- documents */

static double number(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static const char *text(const json_t *object, const char *key) {
    const char *value = json_string_value(json_object_get(object, key));
    return value != NULL ? value : "-";
}

static double median(const json_t *row) {
    return number(json_object_get(json_object_get(row, "epoch"), "settled"), "median");
}

static bool failed(const json_t *device) {
    return json_object_get(device, "error") != NULL;
}

/* ------------------------------------------------------------------------ writing */

/* A short text by value. */
typedef struct shown {
    char text[64];
} shown;

static shown show(const char *format, double value) {
    shown out = {"-"};
    if (!isnan(value))
        snprintf(out.text, sizeof out.text, format, value);
    return out;
}

static shown show_seconds(double value) {
    if (value < 0.9995e-3)
        return show("%.1f us", value * 1e6);
    return value < 0.9995 ? show("%.1f ms", value * 1e3) : show("%.2f s", value);
}

static shown show_share(double value) {
    return show("%.1f%%", 100 * value);
}

/* 2,490,000 */
static shown show_count(double value) {
    shown plain = show("%.0f", value), out = {""};
    size_t length = strlen(plain.text), used = 0;
    for (size_t i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            out.text[used++] = ',';
        out.text[used++] = plain.text[i];
    }
    return isnan(value) ? plain : out;
}

/* ------------------------------------------------------------------------- charts */

enum { COLOURS = 6 };

/* A part of a bar: how much of the chart's width, what it is, and its colour. */
typedef struct piece {
    double share;
    const char *title;
    size_t colour;
} piece;

static void put_bar(FILE *out, const char *name, const char *value, const piece *pieces,
                    size_t count) {
    double at = 0;
    fputs("<div class=\"bar\"><span>", out);
    mimus__page_text(out, name);
    fputs("</span><svg role=\"img\" aria-label=\"", out);
    mimus__page_text(out, value);
    fputs("\">", out);
    for (size_t i = 0; i < count; i++) {
        double share = pieces[i].share > 0 ? fmin(pieces[i].share, 1 - at) : 0; /* NaN: nothing */
        fprintf(out, "<rect class=\"k%zu\" x=\"%.2f%%\" width=\"%.2f%%\" height=\"100%%\"><title>",
                pieces[i].colour % COLOURS, 100 * at, 100 * share);
        mimus__page_text(out, pieces[i].title);
        fputs("</title></rect>", out);
        at += share;
    }
    fputs("</svg><span>", out);
    mimus__page_text(out, value);
    fputs("</span></div>\n", out);
}

static void put_key(FILE *out, const char *const *names, size_t count) {
    fputs("<div class=\"key\">", out);
    for (size_t i = 0; i < count; i++) {
        fprintf(out,
                "<span><svg aria-hidden=\"true\"><rect class=\"k%zu\" width=\"100%%\" "
                "height=\"100%%\"></rect></svg> ",
                i % COLOURS);
        mimus__page_text(out, names[i]);
        fputs("</span>", out);
    }
    fputs("</div>\n", out);
}

static void put_title(FILE *out, const char *title, const char *note) {
    fprintf(out, "<h3>%s</h3>\n<p>%s</p>\n", title, note);
}

static void begin_table(FILE *out, const char *const *titles, size_t count) {
    fputs("<div class=\"wide\"><table><thead><tr>", out);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "<th>%s</th>", titles[i]);
    fputs("</tr></thead><tbody>\n", out);
}

static void put_cell(FILE *out, const char *value) {
    fputs("<td>", out);
    mimus__page_text(out, value);
    fputs("</td>", out);
}

static void end_table(FILE *out) {
    fputs("</tbody></table></div>\n", out);
}

/* An epoch's time, its floor a piece of its own. */
static void put_epoch_bar(FILE *out, const char *name, const json_t *device, double longest) {
    const json_t *epoch = json_object_get(device, "epoch");
    double seconds = median(device), least = fmin(number(epoch, "floor"), seconds);
    char value[160];
    const piece pieces[] = {{least / longest, "floor", 0},
                            {(seconds - least) / longest, "above it", 1}};
    snprintf(value, sizeof value, "%s, %s x floor", show_seconds(seconds).text,
             show("%.2f", number(epoch, "over_floor")).text);
    put_bar(out, name, value, pieces, 2);
}

static const char *const floor_names[] = {"floor", "above it"};

/* ------------------------------------------------------------------------ devices */

static double longest_epoch(const json_t *rows) {
    double longest = 0;
    size_t i;
    const json_t *row;
    json_array_foreach(rows, i, row) longest = fmax(longest, median(row));
    return longest;
}

static void put_epochs(FILE *out, const json_t *devices) {
    size_t i;
    const json_t *device;
    put_title(out, "An epoch, and its floor",
              "Median of the settled epochs. The floor is what the products' operations and the "
              "gather's bytes take at the device's own best.");
    put_key(out, floor_names, 2);
    json_array_foreach(devices, i, device) {
        if (!failed(device))
            put_epoch_bar(out, text(device, "name"), device, longest_epoch(devices));
    }
}

/* The phases that any of the devices has, in the order met: devices may differ in their plan. A
 * phase's place is its colour. */
typedef struct phase_names {
    const char *name[16];
    size_t count;
} phase_names;

static size_t place_of(const phase_names *names, const char *name) {
    size_t place = 0;
    while (place < names->count && strcmp(names->name[place], name) != 0)
        place++;
    return place;
}

static phase_names name_phases(const json_t *devices) {
    phase_names names = {.count = 0};
    size_t i, p;
    const json_t *device, *phase;
    json_array_foreach(devices, i, device) {
        json_array_foreach(json_object_get(json_object_get(device, "step"), "phases"), p, phase) {
            if (place_of(&names, text(phase, "name")) == names.count &&
                names.count < sizeof names.name / sizeof *names.name)
                names.name[names.count++] = text(phase, "name");
        }
    }
    return names;
}

static void put_step(FILE *out, const json_t *device, const phase_names *names) {
    const json_t *step = json_object_get(device, "step"), *phase;
    piece pieces[16];
    char titles[16][128];
    double sum = 0;
    size_t i, count = 0;
    json_array_foreach(json_object_get(step, "phases"), i, phase) sum += number(phase, "seconds");
    json_array_foreach(json_object_get(step, "phases"), i, phase) {
        if (count == sizeof pieces / sizeof *pieces)
            break;
        snprintf(titles[count], sizeof titles[count], "%.40s: %s", text(phase, "name"),
                 show_seconds(number(phase, "seconds")).text);
        pieces[count] = (piece){number(phase, "seconds") / sum, titles[count],
                                place_of(names, text(phase, "name"))};
        count++;
    }
    put_bar(out, text(device, "name"), show_seconds(number(step, "seconds")).text, pieces, count);
}

static void put_steps(FILE *out, const json_t *devices) {
    const phase_names names = name_phases(devices);
    const json_t *device;
    size_t i;
    put_title(out, "Where a step's time goes",
              "Each phase alone, as a share of all of them; the time is that of whole steps.");
    put_key(out, names.name, names.count);
    json_array_foreach(devices, i, device) {
        if (!failed(device))
            put_step(out, device, &names);
    }
}

static bool any_measured(const json_t *devices) {
    size_t i;
    const json_t *device;
    json_array_foreach(devices, i, device) {
        if (!failed(device))
            return true;
    }
    return false;
}

/* Bars from 0 to 100% of rows that are named by their member "name". */
static void put_agreements(FILE *out, const json_t *rows) {
    size_t i;
    const json_t *row;
    put_title(out, "Held-out agreement", "After the last epoch, mean of the heads.");
    json_array_foreach(rows, i, row) {
        double agreement = number(row, "held_out_agreement");
        if (!failed(row))
            put_bar(out, text(row, "name"), show_share(agreement).text,
                    &(const piece){agreement, "agreement", 0}, 1);
    }
}

static void put_device_row(FILE *out, const json_t *device) {
    const json_t *limits = json_object_get(device, "limits");
    const json_t *epoch = json_object_get(device, "epoch");
    const json_t *step = json_object_get(device, "step");
    const json_t *settled = json_object_get(epoch, "settled");
    fputs("<tr>", out);
    put_cell(out, text(device, "name"));
    put_cell(out, text(device, "driver"));
    put_cell(out, show("%.0f", number(limits, "flops") / 1e9).text);
    put_cell(out, show("%.1f", fmax(number(limits, "copy"), number(limits, "triad")) / 1e9).text);
    put_cell(out, show_seconds(number(settled, "minimum")).text);
    put_cell(out, show_seconds(number(settled, "median")).text);
    put_cell(out, show_seconds(number(settled, "maximum")).text);
    put_cell(out, show_seconds(number(epoch, "first")).text);
    put_cell(out, show_seconds(number(epoch, "floor")).text);
    put_cell(out, show("%.2f", number(epoch, "over_floor")).text);
    put_cell(out, show_count(number(step, "launches")).text);
    put_cell(out, show_share(number(step, "enqueue_share")).text);
    put_cell(out, show_share(number(device, "held_out_agreement")).text);
    put_cell(out, show("%.1e", number(device, "loss_difference")).text);
    fputs("</tr>\n", out);
}

static void put_devices(FILE *out, const json_t *devices) {
    static const char *const titles[] = {
        "device",          "driver",       "peak, GFLOPS", "memory, GB/s", "epoch, least",
        "median",          "most",         "first",        "floor",        "over floor",
        "launches a step", "enqueuing it", "agreement",    "losses off by"};
    size_t i;
    const json_t *device;
    if (any_measured(devices)) {
        put_epochs(out, devices);
        put_steps(out, devices);
        put_agreements(out, devices);
        begin_table(out, titles, sizeof titles / sizeof *titles);
        json_array_foreach(devices, i, device) {
            if (!failed(device))
                put_device_row(out, device);
        }
        end_table(out);
    }
    json_array_foreach(devices, i, device) {
        if (!failed(device))
            continue;
        fputs("<p class=\"error\">", out);
        mimus__page_text(out, text(device, "name"));
        fputs(": ", out);
        mimus__page_text(out, text(device, "error"));
        fputs("</p>\n", out);
    }
}

/* ----------------------------------------------------------------------- ablation */

static void put_stage_row(FILE *out, const json_t *stage, double slowest) {
    const json_t *epoch = json_object_get(stage, "epoch");
    const json_t *settled = json_object_get(epoch, "settled");
    fputs("<tr>", out);
    put_cell(out, text(stage, "name"));
    put_cell(out, show_count(number(stage, "batch")).text);
    put_cell(out, show_seconds(number(settled, "minimum")).text);
    put_cell(out, show_seconds(number(settled, "median")).text);
    put_cell(out, show_seconds(number(settled, "maximum")).text);
    put_cell(out, show("%.2f", slowest / number(settled, "median")).text);
    put_cell(out, show_count(number(epoch, "launches")).text);
    put_cell(out, show_count(number(epoch, "reads")).text);
    put_cell(out, show_share(number(stage, "held_out_agreement")).text);
    put_cell(out, show("%+.2f", 100 * number(stage, "difference")).text);
    fputs("</tr>\n", out);
}

static void put_ablation(FILE *out, const json_t *ablation) {
    static const char *const titles[] = {"stage",     "batch",     "epoch, least", "median",
                                         "most",      "faster",    "launches",     "reads",
                                         "agreement", "points off"};
    const json_t *stages = json_object_get(ablation, "stages"), *stage;
    double longest = longest_epoch(stages);
    size_t i;
    put_title(out, "Our way of training, taken apart",
              "An epoch when the host uploads each batch, every head has a loss of its own and the "
              "loss is read every step; then without one after the other.");
    json_array_foreach(stages, i, stage)
        put_bar(out, text(stage, "name"), show_seconds(median(stage)).text,
                &(const piece){median(stage) / longest, "epoch", 0}, 1);
    put_agreements(out, stages);
    begin_table(out, titles, sizeof titles / sizeof *titles);
    json_array_foreach(stages, i, stage)
        put_stage_row(out, stage, median(json_array_get(stages, 0)));
    end_table(out);
    fputs("<p>", out);
    mimus__page_text(out, text(ablation, "name"));
    fprintf(out, ". The fast way %s the slow one: %s points apart on the same batches.</p>\n",
            json_is_true(json_object_get(ablation, "agrees")) ? "agrees with"
                                                              : "does not agree with",
            show("%.2f", 100 * number(ablation, "difference")).text);
}

/* ---------------------------------------------------------------------- many runs */

static void put_pass_row(FILE *out, const json_t *pass) {
    bool shared = json_is_true(json_object_get(pass, "shared"));
    const json_t *settled = json_object_get(json_object_get(pass, "epoch"), "settled");
    fputs("<tr>", out);
    put_cell(out, show_count(number(pass, "runs")).text);
    put_cell(out, shared ? "shared" : "own");
    put_cell(out, show_seconds(number(settled, "median")).text);
    put_cell(out, show_seconds(number(pass, "a_run")).text);
    put_cell(out, show("%.2f", number(pass, "beside_solo")).text);
    put_cell(out, show_count(number(pass, "launches")).text);
    fputs("</tr>\n", out);
}

static void put_many(FILE *out, const json_t *many) {
    static const char *const titles[] = {"runs",  "batches",    "epoch, median",
                                         "a run", "beside one", "launches a step"};
    const json_t *passes = json_object_get(many, "passes"), *pass;
    double most = 0;
    size_t i;
    put_title(out, "Runs at once",
              "What an epoch takes of each run, with batches of its own and with one for all.");
    json_array_foreach(passes, i, pass) most = fmax(most, number(pass, "a_run"));
    json_array_foreach(passes, i, pass) {
        char name[48];
        bool shared = json_is_true(json_object_get(pass, "shared"));
        snprintf(name, sizeof name, "%.0f%s", number(pass, "runs"), shared ? ", shared" : "");
        put_bar(out, name, show_seconds(number(pass, "a_run")).text,
                &(const piece){number(pass, "a_run") / most, "a run", 0}, 1);
    }
    begin_table(out, titles, sizeof titles / sizeof *titles);
    json_array_foreach(passes, i, pass) put_pass_row(out, pass);
    end_table(out);
    fputs("<p>", out);
    mimus__page_text(out, text(many, "name"));
    fputs("</p>\n", out);
}

/* ---------------------------------------------------------------------- workloads */

static void put_work(FILE *out, const json_t *work) {
    const json_t *config = json_object_get(work, "config"), *width;
    size_t i;
    fputs("<h2>", out);
    mimus__page_text(out, text(work, "title"));
    fprintf(out, "</h2>\n<p>%s samples (%s held out), ", show_count(number(work, "samples")).text,
            show_count(number(work, "held_out_samples")).text);
    fprintf(out, "%s senses, %s actions in %s heads; hidden",
            show_count(number(work, "senses")).text, show_count(number(work, "actions")).text,
            show_count(number(work, "heads")).text);
    json_array_foreach(json_object_get(config, "hidden"), i, width)
        fprintf(out, "%s%.0f", i > 0 ? "," : " ", json_number_value(width));
    fprintf(out, "%s, batch %s, learning rate %s, %s epochs</p>\n", i == 0 ? " none" : "",
            show_count(number(config, "batch")).text, show("%g", number(config, "lr")).text,
            show_count(number(config, "epochs")).text);
}

static void put_document(FILE *out, const json_t *document) {
    const json_t *ablation = json_object_get(document, "ablation");
    fputs("<section>\n", out);
    put_work(out, json_object_get(document, "workload"));
    const json_t *many = json_object_get(document, "many");
    if (ablation != NULL)
        put_ablation(out, ablation);
    else if (many != NULL)
        put_many(out, many);
    else
        put_devices(out, json_object_get(document, "devices"));
    fputs("</section>\n", out);
}

/* All devices on all workloads side by side: what can be compared is how far from the floor. */
static void put_comparison(FILE *out, const json_t *documents) {
    size_t i, d;
    const json_t *document, *device;
    double most = 0;
    json_array_foreach(documents, i, document) {
        json_array_foreach(json_object_get(document, "devices"), d, device) most =
            fmax(most, number(json_object_get(device, "epoch"), "over_floor"));
    }
    if (!(most > 0))
        return;
    put_title(out, "An epoch over its floor",
              "Of every workload on every device; 1 would be the "
              "device's best.");
    json_array_foreach(documents, i, document) {
        const char *work = text(json_object_get(document, "workload"), "title");
        json_array_foreach(json_object_get(document, "devices"), d, device) {
            double over = number(json_object_get(device, "epoch"), "over_floor");
            char name[256];
            snprintf(name, sizeof name, "%.80s, %.150s", work, text(device, "name"));
            if (!failed(device))
                put_bar(out, name, show("%.2f", over).text,
                        &(const piece){over / most, "over floor", 0}, 1);
        }
    }
}

void mimus__bench_page(FILE *out, const json_t *document) {
    const json_t *documents = json_object_get(document, "workloads"), *each;
    const json_t *first = documents != NULL ? json_array_get(documents, 0) : document;
    size_t i;
    mimus__page_begin(out, "mimus bench");
    fputs("<h1>mimus bench</h1>\n<p>mimus ", out);
    mimus__page_text(out, text(first, "version"));
    fputs("</p>\n", out);
    if (documents != NULL) {
        put_comparison(out, documents);
        json_array_foreach(documents, i, each) put_document(out, each);
    } else {
        put_document(out, document);
    }
    mimus__page_end(out);
}

mimus_status mimus_bench_report(const char *json, const char *path) {
    mimus_status status = MIMUS_OK;
    mimus__file_writer writer = {0};
    json_error_t error;
    json_t *document = json != NULL ? json_loads(json, 0, &error) : NULL;
    if (json == NULL) {
        status = mimus__file_writer_open(&writer, path);
        goto out;
    }
    if (!json_is_object(document)) {
        status = mimus__fail(MIMUS_ERR_FORMAT, "expected a document of the bench, found %s",
                             document == NULL ? error.text : "JSON that is no object");
        goto out;
    }
    MIMUS_TRY(mimus__file_writer_open(&writer, path));
    mimus__bench_page(writer.stream, document);
    MIMUS_TRY(mimus__file_writer_commit(&writer));
out:
    mimus__file_writer_abort(&writer);
    json_decref(document);
    return status;
}
