#include "epochs.h"

#include "cli.h"
#include "human.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NARROW = 7, WIDE = 12, FIXED_CELLS = 55, MANY_HEADS = 8 };

static const json_t *heads_of(const json_t *row) {
    return json_object_get(row, "heads");
}

/* Held-out samples judge the policy; without any, those it learned from have to. */
static bool has_held_out(const json_t *row) {
    return isfinite(cli_number(row, "held_out_loss"));
}

static double agreement(const json_t *row, const json_t *head) {
    return cli_number(head, has_held_out(row) ? "held_out_agreement" : "agreement");
}

/* Over the heads that have labels. */
static double mean_agreement(const json_t *row) {
    double sum = 0, count = 0;
    size_t i;
    const json_t *head;
    json_array_foreach(heads_of(row), i, head) {
        double share = agreement(row, head);
        sum += isfinite(share) ? share : 0;
        count += isfinite(share);
    }
    return count > 0 ? sum / count : NAN;
}

static const char *name_of(const json_t *head) {
    const char *name = cli_text(head, "name");
    return name != NULL ? name : "?";
}

/* -------------------------------------------------------------------- line */

/* " (move 45.1%, shoot 78.0%)" for a few heads. */
static void list_heads(const json_t *row, char *out, size_t bytes) {
    const json_t *heads = heads_of(row), *head;
    size_t count = json_array_size(heads), at = 0, i;
    out[0] = '\0';
    if (count < 2 || count > MANY_HEADS)
        return;
    json_array_foreach(heads, i, head) {
        char name[4 * 24 + 8];
        human_fit(name, sizeof name, name_of(head), 24);
        at += (size_t)snprintf(out + at, bytes - at, "%s%s %s", i > 0 ? ", " : " (", name,
                               human_share(agreement(row, head)).text);
    }
    snprintf(out + at, bytes - at, ")");
}

char *epochs_line(const json_t *row, uint32_t epochs) {
    char heads[MANY_HEADS * 128 + 8], of[64] = "";
    size_t at = 0;
    list_heads(row, heads, sizeof heads);
    if (epochs > 0)
        at = (size_t)snprintf(of, sizeof of, "/%u", (unsigned)epochs);
    if (json_object_get(row, "runs") != NULL) /* means over them */
        snprintf(of + at, sizeof of - at, "  %s",
                 human_things(cli_number(row, "runs"), "run").text);
    char *line = cli_format(
        "epoch %s%s  loss %s  held-out %s  agreement %s%s  lr %.3g  %s samples/s  %s\n",
        human_count(cli_number(row, "epoch")).text, of, human_real(cli_number(row, "loss")).text,
        human_real(cli_number(row, "held_out_loss")).text, human_share(mean_agreement(row)).text,
        heads, cli_number(row, "lr"), human_short(cli_number(row, "samples_per_second")).text,
        human_seconds(cli_number(row, "seconds")).text);
    return line;
}

/* ------------------------------------------------------------------- table */

static size_t head_cells(const json_t *head) {
    size_t cells = human_width(name_of(head));
    return cells < NARROW ? NARROW : cells > WIDE ? WIDE : cells;
}

/* Whether every head gets a column. */
static bool heads_fit(const json_t *row, size_t columns) {
    size_t cells = FIXED_CELLS, i;
    const json_t *head;
    json_array_foreach(heads_of(row), i, head) cells += 2 + head_cells(head);
    return json_array_size(heads_of(row)) > 1 && cells < columns;
}

/* The columns of agreement: titles, or a row's values. */
static char *middle(const json_t *row, size_t columns, bool titles) {
    if (!heads_fit(row, columns))
        return titles ? cli_format("  %9s", "agreement")
                      : cli_format("  %9s", human_share(mean_agreement(row)).text);
    size_t bytes = json_array_size(heads_of(row)) * (4 * WIDE + 8) + 1, at = 0, i;
    char *out = cli_allocate(bytes, 1);
    const json_t *head;
    json_array_foreach(heads_of(row), i, head) {
        char text[4 * WIDE + 8];
        human_fit(text, sizeof text,
                  titles ? name_of(head) : human_share(agreement(row, head)).text, WIDE);
        at += (size_t)snprintf(out + at, bytes - at, "  %*s%s",
                               (int)(head_cells(head) - human_width(text)), "", text);
    }
    return out;
}

char *epochs_heading(const json_t *row, size_t columns) {
    char *titles = middle(row, columns, true);
    const char *part = has_held_out(row) ? "held-out" : "training";
    char *caption =
        heads_fit(row, columns)
            ? cli_format("agreement per head, on the %s part\n", part)
            : cli_format("agreement on the %s part%s\n", part,
                         json_array_size(heads_of(row)) > 1 ? ", the mean of the heads" : "");
    char *heading = cli_format("%s%5s  %9s  %9s%s  %8s  %9s  %7s\n", caption, "epoch", "loss",
                               "held-out", titles, "lr", "samples/s", "time");
    free(titles);
    free(caption);
    return heading;
}

char *epochs_row(const json_t *row, size_t columns) {
    char *shares = middle(row, columns, false);
    char *line = cli_format(
        "%5.0f  %9s  %9s%s  %8.3g  %9s  %7s\n", cli_number(row, "epoch"),
        human_real(cli_number(row, "loss")).text, human_real(cli_number(row, "held_out_loss")).text,
        shares, cli_number(row, "lr"), human_short(cli_number(row, "samples_per_second")).text,
        human_seconds(cli_number(row, "seconds")).text);
    free(shares);
    return line;
}
