#include "settings.h"

#include "cli.h"

#include <stdlib.h>
#include <string.h>

/* --no-NAME for every setting that is on or off. */
static void add_negated(cli_settings *settings, option_groups *groups, size_t count) {
    size_t negated = 0;
    settings->negated = cli_allocate(count, sizeof *settings->negated);
    for (size_t i = 0; i < count; i++) {
        const mimus_config_field *field = mimus_config_describe(i);
        if (strcmp(field->hint, "off|on") != 0)
            continue;
        texts_add(&settings->names, cli_format("no_%s", field->name));
        settings->negated[negated] = (cli_option){.name = settings->names.item[negated],
                                                  .help = "the same as off",
                                                  .list = &settings->values,
                                                  .key = field->name,
                                                  .stands = "off"};
        negated++;
    }
    options_add(groups, NULL, settings->negated, negated, false);
}

/* What is off takes no value and turns it on; what may differ by run takes several. */
static cli_option option_of(cli_settings *settings, size_t index) {
    const mimus_config_field *field = mimus_config_describe(index);
    cli_option option = {.name = field->name,
                         .value = field->hint,
                         .help = field->help,
                         .fallback = field->value,
                         .list = &settings->values,
                         .key = field->name};
    if (strcmp(field->hint, "off|on") == 0 && strcmp(field->value, "off") == 0) {
        option.value = option.fallback = NULL;
        option.stands = "on";
    } else if (mimus_config_varies(index)) {
        texts_add(&settings->hints, cli_format("%s[%c...]", field->hint,
                                               strchr(field->hint, ',') != NULL ? '/' : ','));
        option.value = settings->hints.item[settings->hints.count - 1];
    }
    return option;
}

void settings_init(cli_settings *settings, option_groups *groups) {
    size_t count = 0;
    memset(settings, 0, sizeof *settings);
    while (mimus_config_describe(count) != NULL)
        count++;
    settings->config[0] =
        (cli_option){.name = "config",
                     .value = "FILE",
                     .help = "settings by name as a JSON object, as in a run's config.json; the "
                             "options below count more",
                     .text = &settings->file};
    settings->fields = cli_allocate(count, sizeof *settings->fields);
    for (size_t i = 0; i < count; i++)
        settings->fields[i] = option_of(settings, i);
    options_add(groups, "Settings", settings->config, 1, false);
    options_add(groups, NULL, settings->fields, count, false);
    add_negated(settings, groups, count);
}

void settings_clear(cli_settings *settings) {
    free(settings->fields);
    free(settings->negated);
    texts_clear(&settings->names);
    texts_clear(&settings->hints);
    texts_clear(&settings->values);
}

bool settings_given(const cli_settings *settings) {
    return settings->file != NULL || settings->values.count > 0;
}

static mimus_status set(mimus_config *config, const char *assignment) {
    size_t length = strcspn(assignment, "=");
    char *name = cli_format("%.*s", (int)length, assignment);
    mimus_status status = mimus_config_set(config, name, assignment + length + 1);
    free(name);
    return status;
}

mimus_status settings_make(const cli_settings *settings, const char *base, mimus_config **out) {
    mimus_config *config = NULL;
    mimus_status status = mimus_config_new(&config);
    if (status == MIMUS_OK && base != NULL)
        status = mimus_config_load(config, base);
    if (status == MIMUS_OK && settings->file != NULL)
        status = mimus_config_load(config, settings->file);
    for (size_t i = 0; status == MIMUS_OK && i < settings->values.count; i++)
        status = set(config, settings->values.item[i]);
    if (status == MIMUS_OK)
        *out = config;
    else
        mimus_config_free(config);
    return status;
}
