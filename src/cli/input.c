#include "input.h"

#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const illegal_names[] = {
    [MIMUS_ILLEGAL_ERROR] = "error",
    [MIMUS_ILLEGAL_DROP] = "drop",
    [MIMUS_ILLEGAL_IGNORE] = "ignore",
};
enum { ILLEGALS = sizeof illegal_names / sizeof *illegal_names };

static size_t count_options(const mimus_format *format) {
    size_t count = 0;
    while (format->options[count].key != NULL)
        count++;
    return count;
}

/* A format's options, each as if it were one of the command's own. */
static void add_format(cli_input *input, option_groups *groups, const mimus_format *format,
                       bool explain) {
    size_t count = count_options(format);
    cli_option *own = cli_allocate(count, sizeof *own);
    for (size_t i = 0; i < count; i++) {
        const mimus_format_option *option = &format->options[i];
        own[i] = (cli_option){.name = option->key,
                              .value = "TEXT",
                              .help = option->help,
                              .list = &input->settings,
                              .key = option->key};
    }
    input->own = cli_reallocate(input->own, input->formats + 1, sizeof *input->own);
    input->own[input->formats++] = own;
    char *title = cli_format("Options for %s files (%s)", format->name, format->label);
    texts_add(&input->titles, title);
    options_add(groups, title, own, count, !explain);
}

static char *format_names(void) {
    char *names = cli_format("one of");
    mimus_format format;
    for (size_t i = 0; mimus_format_describe(i, &format); i++) {
        char *more = cli_format("%s%s %s", names, i > 0 ? "," : "", format.name);
        free(names);
        names = more;
    }
    char *help = cli_format("%s; found by looking at the files", names);
    free(names);
    return help;
}

void input_init(cli_input *input, option_groups *groups, bool explain) {
    memset(input, 0, sizeof *input);
    char *formats = format_names();
    texts_add(&input->titles, formats);
    input->common[0] =
        (cli_option){.name = "format", .value = "NAME", .help = formats, .text = &input->format};
    input->common[1] =
        (cli_option){.name = "set",
                     .value = "KEY=VALUE",
                     .help = explain ? "an option of the format's reader; --KEY VALUE is the same"
                                     : "an option of the format's reader, also as --KEY VALUE: "
                                       "mimus help import has them all",
                     .list = &input->settings};
    input->common[2] =
        (cli_option){.name = "illegal",
                     .value = "WHAT",
                     .help = "samples that nothing can be learned from, as a sense "
                             "that is not finite or a forbidden action: error, drop "
                             "(leave them out), ignore (keep them without the label)",
                     .fallback = "error",
                     .text = &input->illegal};
    input->common[3] = (cli_option){.name = "where",
                                    .value = "CONDITION",
                                    .help = "only samples for which it holds: health>0.5, "
                                            "move=left, with \"and\" between several",
                                    .text = &input->where};
    input->common[4] = (cli_option){.name = "episodes",
                                    .value = "LIST",
                                    .help = "only these, numbered from 0 through all files: 0:100, "
                                            "or 3,7,20:",
                                    .text = &input->episodes};
    input->common[5] = (cli_option){.name = "limit",
                                    .value = "N",
                                    .help = "only the first N samples of what the others leave",
                                    .text = &input->limit};
    options_add(groups, "How the files are read", input->common,
                sizeof input->common / sizeof *input->common, false);
    mimus_format format;
    for (size_t i = 0; mimus_format_describe(i, &format); i++)
        add_format(input, groups, &format, explain);
}

void input_clear(cli_input *input) {
    for (size_t i = 0; i < input->formats; i++)
        free(input->own[i]);
    free(input->own);
    texts_clear(&input->settings);
    texts_clear(&input->titles);
}

static const char *illegal_at(const void *user, size_t index) {
    (void)user;
    return index < ILLEGALS ? illegal_names[index] : NULL;
}

/* --episodes is a list of numbers, or a path: where an HDF5 file has the numbers of its episodes.
 */
static bool names_dataset(const char *episodes) {
    return strchr(episodes, '/') != NULL;
}

static bool parse_limit(const char *text, uint64_t *out) {
    char *end = NULL;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return errno == 0 && *text >= '0' && *text <= '9' && *end == '\0' && *out > 0;
}

bool input_source(const cli_input *input, const char *verb, char **paths, int count,
                  mimus_source *out) {
    *out = (mimus_source){.paths = (const char *const *)paths,
                          .count = (size_t)count,
                          .format = input->format,
                          .options = (const char *const *)input->settings.item};
    size_t illegal = 0;
    out->where = input->where;
    if (input->episodes != NULL && names_dataset(input->episodes)) {
        texts_add((cli_texts *)&input->settings, cli_format("episode=%s", input->episodes));
        out->options = (const char *const *)input->settings.item;
    } else {
        out->episodes = input->episodes;
    }
    if (input->limit != NULL && !parse_limit(input->limit, &out->limit)) {
        cli_usage(verb, "--limit %s: expected a number of samples, 1 or more", input->limit);
        return false;
    }
    if (input->illegal != NULL &&
        !options_choice(verb, "illegal", input->illegal, illegal_at, &illegal))
        return false;
    out->illegal = (mimus_illegal)illegal;
    return true;
}
