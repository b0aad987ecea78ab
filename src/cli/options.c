#include "options.h"

#include "cli.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CODE = 256, NAME_BYTES = 64, HELP_COLUMN = 27, HELP_WIDTH = 80 };

/* ------------------------------------------------------------------- cli_texts */

void texts_add(cli_texts *texts, char *text) {
    texts->item = cli_reallocate(texts->item, texts->count + 2, sizeof *texts->item);
    texts->item[texts->count++] = text;
    texts->item[texts->count] = NULL;
}

void texts_clear(cli_texts *texts) {
    for (size_t i = 0; i < texts->count; i++)
        free(texts->item[i]);
    free(texts->item);
    *texts = (cli_texts){NULL, 0};
}

void options_add(option_groups *groups, const char *title, const cli_option *option, size_t count,
                 bool hidden) {
    groups->item = cli_reallocate(groups->item, groups->count + 1, sizeof *groups->item);
    groups->item[groups->count++] = (option_group){title, option, count, hidden};
}

void options_clear(option_groups *groups) {
    free(groups->item);
    *groups = (option_groups){NULL, 0};
}

/* ----------------------------------------------------------------- nearest */

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Insertions, deletions, replacements and swaps of neighbours that make `a` into `b` (optimal
 * string alignment). */
static size_t distance(const char *a, const char *b) {
    size_t rows[3][NAME_BYTES + 1];
    size_t length = strlen(b);
    if (strlen(a) > NAME_BYTES || length > NAME_BYTES)
        return SIZE_MAX;
    size_t *before = rows[0], *above = rows[1], *row = rows[2];
    for (size_t j = 0; j <= length; j++)
        above[j] = j;
    for (size_t i = 1; a[i - 1] != '\0'; i++) {
        row[0] = i;
        for (size_t j = 1; j <= length; j++) {
            size_t differ = a[i - 1] != b[j - 1];
            row[j] = least(least(above[j] + 1, row[j - 1] + 1), above[j - 1] + differ);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
        }
        size_t *oldest = before;
        before = above;
        above = row;
        row = oldest;
    }
    return above[length];
}

const char *options_nearest(const char *word, const char *(*at)(const void *user, size_t index),
                            const void *user) {
    const char *nearest = NULL;
    size_t allowed = 1 + strlen(word) / 4;
    for (size_t i = 0; at(user, i) != NULL; i++) {
        size_t edits = distance(word, at(user, i));
        if (edits <= allowed && edits < strlen(word)) {
            nearest = at(user, i);
            allowed = edits - (edits > 0); /* the next has to be better */
            if (edits == 0)
                break;
        }
    }
    return nearest;
}

bool options_choice(const char *verb, const char *option, const char *value,
                    const char *(*at)(const void *user, size_t index), size_t *out) {
    char *all = cli_format("%s", "");
    for (size_t i = 0; at(NULL, i) != NULL; i++) {
        if (strcmp(at(NULL, i), value) == 0) {
            free(all);
            *out = i;
            return true;
        }
        char *more = cli_format("%s%s%s", all, i > 0 ? ", " : "", at(NULL, i));
        free(all);
        all = more;
    }
    const char *nearest = options_nearest(value, at, NULL);
    if (nearest != NULL)
        cli_usage(verb, "no --%s \"%s\"; did you mean %s?", option, value, nearest);
    else
        cli_usage(verb, "no --%s \"%s\"; there are: %s", option, value, all);
    free(all);
    return false;
}

/* ----------------------------------------------------------------- parsing */

/* The options of all groups in the forms that getopt_long wants, and back. */
typedef struct cli_parser {
    const cli_option **option; /* (count) */
    struct option *longs;      /* (count + 2): with --help, and the end */
    char (*names)[NAME_BYTES];
    char *letters;
    size_t count, letter_count;
} cli_parser;

static void dashed(char name[NAME_BYTES], const char *from) {
    snprintf(name, NAME_BYTES, "%s", from);
    for (char *c = name; *c != '\0'; c++) {
        if (*c == '_')
            *c = '-';
    }
}

static bool has_name(const cli_parser *parser, const char *name) {
    for (size_t i = 0; i < parser->count; i++) {
        if (strcmp(parser->names[i], name) == 0)
            return true;
    }
    return false;
}

/* Room was made for all options of all groups. */
static void parser_add(cli_parser *parser, const cli_option *option) {
    char name[NAME_BYTES];
    size_t i = parser->count;
    dashed(name, option->name);
    if (has_name(parser, name))
        return;
    memcpy(parser->names[i], name, sizeof name);
    parser->option[i] = option;
    parser->longs[i] =
        (struct option){.name = parser->names[i],
                        .has_arg = option->value != NULL ? required_argument : no_argument,
                        .val = FIRST_CODE + (int)i};
    if (option->letter != 0) {
        parser->letters[parser->letter_count++] = option->letter;
        if (option->value != NULL)
            parser->letters[parser->letter_count++] = ':';
    }
    parser->count++;
}

static void parser_init(cli_parser *out, const option_groups *groups) {
    size_t most = 0;
    for (size_t g = 0; g < groups->count; g++)
        most += groups->item[g].count;
    *out = (cli_parser){.option = cli_allocate(most, sizeof(const cli_option *)),
                        .longs = cli_allocate(most + 2, sizeof(struct option)),
                        .names = cli_allocate(most, sizeof *out->names),
                        .letters = cli_allocate(2 * most + 4, 1)};
    out->letters[out->letter_count++] = ':'; /* tells a missing value from an unknown option */
    out->letters[out->letter_count++] = 'h';
    for (size_t g = 0; g < groups->count; g++) {
        for (size_t i = 0; i < groups->item[g].count; i++)
            parser_add(out, &groups->item[g].option[i]);
    }
    out->longs[out->count] = (struct option){.name = "help", .has_arg = no_argument, .val = 'h'};
}

static void parser_clear(cli_parser *parser) {
    free(parser->option);
    free(parser->longs);
    free(parser->names);
    free(parser->letters);
}

static const char *name_at(const void *user, size_t index) {
    return ((const struct option *)user)[index].name;
}

/* A long option as it was written, up to its '='. */
static void written(char name[NAME_BYTES], const char *argument) {
    snprintf(name, NAME_BYTES, "%.*s", (int)strcspn(argument, "="), argument);
}

static const cli_option *by_code(const cli_parser *parser, int code) {
    if (code >= FIRST_CODE)
        return parser->option[code - FIRST_CODE];
    for (size_t i = 0; i < parser->count; i++) {
        if (parser->option[i]->letter == code)
            return parser->option[i];
    }
    return NULL;
}

/* The options that begin with `name`, "--set, --senses"; how many. */
static size_t beginnings(const cli_parser *parser, const char *name, char *text, size_t bytes) {
    size_t found = 0, at = 0;
    text[0] = '\0';
    for (const struct option *known = parser->longs; known->name != NULL; known++) {
        if (strncmp(known->name, name, strlen(name)) != 0)
            continue;
        if (at < bytes)
            at += (size_t)snprintf(text + at, bytes - at, "%s--%s", found > 0 ? ", " : "",
                                   known->name);
        found++;
    }
    return found;
}

/* Say what is wrong where getopt_long stopped: optopt is a long option's code, a letter, or 0 for
 * a long option that there is not. */
static int complain(const cli_parser *parser, const char *verb, int found, const char *argument) {
    char name[NAME_BYTES], many[512];
    const cli_option *known = by_code(parser, optopt);
    if (optopt == 'h')
        return cli_usage(verb, "option --help takes no value");
    if (optopt >= FIRST_CODE) {
        dashed(name, known->name);
        return found == ':' ? cli_usage(verb, "option --%s needs a value, %s", name, known->value)
                            : cli_usage(verb, "option --%s takes no value", name);
    }
    if (optopt != 0)
        return found == ':' ? cli_usage(verb, "option -%c needs a value, %s", optopt, known->value)
                            : cli_usage(verb, "unknown option -%c", optopt);
    written(name, argument + 2);
    if (beginnings(parser, name, many, sizeof many) > 1)
        return cli_usage(verb, "option --%s could be any of %s", name, many);
    const char *nearest = options_nearest(name, name_at, parser->longs);
    if (nearest != NULL)
        return cli_usage(verb, "unknown option --%s; did you mean --%s?", name, nearest);
    return cli_usage(verb, "unknown option --%s", name);
}

static void take(const cli_option *option, const char *given) {
    const char *value = option->value != NULL ? given : option->stands;
    if (option->flag != NULL)
        *option->flag = true;
    else if (option->text != NULL)
        *option->text = value;
    else
        texts_add(option->list, option->key != NULL ? cli_format("%s=%s", option->key, value)
                                                    : cli_format("%s", value));
}

/* -------------------------------------------------------------------- help */

void options_wrap(const char *text, size_t column) {
    size_t at = column;
    for (const char *word = text; *word != '\0';) {
        size_t length = strcspn(word, " ");
        if (at > column && at + 1 + length > HELP_WIDTH) {
            printf("\n%*s", (int)column, "");
            at = column;
        }
        at += (size_t)printf("%s%.*s", at > column ? " " : "", (int)length, word);
        word += length;
        word += strspn(word, " ");
    }
    putchar('\n');
}

static void help_option(const cli_option *option) {
    char name[NAME_BYTES], left[2 * NAME_BYTES];
    dashed(name, option->name);
    int width =
        snprintf(left, sizeof left, "  %c%c%s --%s%s%s", option->letter ? '-' : ' ',
                 option->letter ? option->letter : ' ', option->letter ? "," : " ", name,
                 option->value != NULL ? " " : "", option->value != NULL ? option->value : "");
    if (width + 2 > HELP_COLUMN)
        printf("%s\n%*s", left, HELP_COLUMN, "");
    else
        printf("%-*s", HELP_COLUMN, left);
    bool fallback = option->fallback != NULL && *option->fallback != '\0';
    char *help = cli_format("%s%s%s%s", option->help, fallback ? " [" : "",
                            fallback ? option->fallback : "", fallback ? "]" : "");
    options_wrap(help, HELP_COLUMN);
    free(help);
}

static void help_usage(const option_page *page) {
    const char *lead = "usage:";
    for (const char *line = page->usage; *line != '\0'; lead = "      ") {
        size_t length = strcspn(line, "\n");
        printf("%s mimus %s%s%.*s\n", lead, page->verb, length > 0 ? " " : "", (int)length, line);
        line += length + (line[length] == '\n');
    }
}

static void help(const option_page *page, const option_groups *groups) {
    static const cli_option this = {.letter = 'h', .name = "help", .help = "this text"};
    help_usage(page);
    if (page->about != NULL)
        printf("\n%s", page->about);
    for (size_t g = 0; g < groups->count; g++) {
        const option_group *group = &groups->item[g];
        if (group->hidden || (group->count == 0 && g > 0))
            continue;
        if (group->title != NULL)
            printf("\n%s\n", group->title);
        for (size_t i = 0; i < group->count; i++)
            help_option(&group->option[i]);
        if (g == 0)
            help_option(&this);
    }
    if (page->notes != NULL)
        printf("\n%s", page->notes);
}

bool options_parse(const option_page *page, const option_groups *groups, int argc, char **argv,
                   int *first, int *code) {
    cli_parser parser;
    bool run = false;
    parser_init(&parser, groups);
    opterr = 0;
    optind = 1;
    while (true) {
        int found = getopt_long(argc, argv, parser.letters, parser.longs, NULL);
        if (found == -1) {
            run = true;
            *first = optind;
            break;
        }
        if (found == 'h') {
            help(page, groups);
            *code = CLI_DONE;
            break;
        }
        if (found == '?' || found == ':') {
            *code = complain(&parser, page->verb, found, argv[optind - 1]);
            break;
        }
        take(by_code(&parser, found), optarg);
    }
    parser_clear(&parser);
    return run;
}
