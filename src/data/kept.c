#include "kept.h"

#include "alloc.h"

#include <string.h>

mimus_status mimus__kept_parse(mimus_schema **out, const char *text, const char *where) {
    mimus_status status = MIMUS_OK;
    json_t *json = NULL;
    *out = NULL;
    MIMUS_TRY(mimus__json_parse(&json, text, strlen(text), where));
    MIMUS_TRY(mimus__schema_from_json(out, json, where));
out:
    json_decref(json);
    return status;
}

bool mimus__kept_fits(const mimus_schema *kept, uint64_t senses, uint64_t columns,
                      uint64_t mask_width) {
    return kept != NULL && kept->senses == senses && kept->heads == columns &&
           (mask_width == 0 || mask_width == mimus__schema_actions(kept));
}

bool mimus__kept_has_bins(const mimus_schema *kept) {
    bool bins = false;
    for (uint32_t h = 0; kept != NULL && h < kept->heads; h++)
        bins = bins || kept->head[h].bin_edges != NULL;
    return bins;
}

mimus_status mimus__kept_heads(mimus_head **out, const mimus_schema *kept) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__alloc(out, kept->heads, sizeof **out));
    for (uint32_t h = 0; h < kept->heads; h++)
        (*out)[h].actions = kept->head[h].actions;
out:
    return status;
}
