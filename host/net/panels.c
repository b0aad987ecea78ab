#include "panels.h"

mimus_status mimus__panels_new(mimus__panels *out, mimus__device *device,
                               const mimus__layout *layout) {
    mimus_status status = MIMUS_OK;
    size_t bytes = layout->total * sizeof(float);
    MIMUS_TRY(mimus__buffer_new(&out->plain, device, bytes, "the weights' panels"));
    MIMUS_TRY(mimus__buffer_new(&out->turned, device, bytes, "the weights' panels"));
out:
    return status;
}

void mimus__panels_free(mimus__panels *panels) {
    mimus__buffer_free(&panels->plain);
    mimus__buffer_free(&panels->turned);
}

void mimus__panels_define(const mimus__panels *panels, mimus__defines *defines) {
    mimus__define_number(defines, "TILE_ROWS", panels->tile.rows);
    mimus__define_number(defines, "TILE_VECTORS", panels->tile.vectors);
    mimus__define_number(defines, "TILE_WIDTH", panels->tile.width);
}
