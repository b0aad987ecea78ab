/* mimus_devices: the device list as text. */
#include "device.h"

mimus_status mimus_devices(const char *selector, char **json) {
    mimus_status status = MIMUS_OK;
    json_t *list = NULL;
    *json = NULL;
    MIMUS_TRY(mimus__device_list(&list, selector));
    MIMUS_TRY(mimus__json_text(json, list, JSON_INDENT(2)));
out:
    json_decref(list);
    return status;
}
