/* Any bytes as a .npz file: reading, auditing, splitting and counting it must end well or fail
 * clearly. What begins with "PK" is the file as it comes; anything else is the members of one,
 * zipped here, for a fuzzer cannot guess checksums:
 *
 *   1 byte   which options are given to the reader
 *   then, again and again: 1 byte which array, 2 bytes length (little-endian), the .npy */
#include "support.h"

#include "statistics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --------------------------------------------------------------------- zip */

typedef struct bytes {
    uint8_t *data;
    size_t size;
} bytes;

static void put(bytes *to, const void *data, size_t size) {
    to->data = realloc(to->data, to->size + size + 1);
    fuzz_expect(to->data != NULL, "no memory");
    memcpy(to->data + to->size, data, size);
    to->size += size;
}

/* `value` in `size` bytes, little-endian. */
static void put_number(bytes *to, uint64_t value, size_t size) {
    for (size_t i = 0; i < size; i++, value >>= 8)
        put(to, &(uint8_t){(uint8_t)value}, 1);
}

static uint32_t crc32_of(const uint8_t *data, size_t size) {
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (0xEDB88320u & (0u - (crc & 1)));
    }
    return ~crc;
}

/* What a local header and the central directory say alike about a stored member. */
static void put_member_fields(bytes *to, const char *name, const uint8_t *data, size_t size) {
    put_number(to, 20, 2); /* version 2.0 */
    put_number(to, 0, 4);  /* no flags, stored */
    put_number(to, 0x00210000, 4);
    put_number(to, crc32_of(data, size), 4);
    put_number(to, size, 4);
    put_number(to, size, 4);
    put_number(to, strlen(name), 2);
    put_number(to, 0, 2); /* no extra field */
}

static void add_member(bytes *zip, bytes *directory, const char *name, const uint8_t *data,
                       size_t size) {
    size_t offset = zip->size;
    put_number(zip, 0x04034B50, 4);
    put_member_fields(zip, name, data, size);
    put(zip, name, strlen(name));
    put(zip, data, size);
    put_number(directory, 0x02014B50, 4);
    put_number(directory, 20, 2);
    put_member_fields(directory, name, data, size);
    put_number(directory, 0, 10); /* no comment, disk 0, no attributes */
    put_number(directory, offset, 4);
    put(directory, name, strlen(name));
}

static bytes zip_of(const uint8_t *data, size_t size) {
    static const char *const names[] = {
        "obs.npy",   "actions.npy",  "action_masks.npy",   "weights.npy",
        "dones.npy", "timeouts.npy", "episode_starts.npy", "indices.npy"};
    bytes zip = {0}, directory = {0};
    unsigned used = 0, members = 0;
    while (size >= 3) {
        unsigned name = data[0] % 8;
        size_t length = (size_t)data[1] | (size_t)data[2] << 8;
        length = length < size - 3 ? length : size - 3;
        if ((used >> name & 1) == 0) {
            add_member(&zip, &directory, names[name], data + 3, length);
            members++;
        }
        used |= 1u << name;
        data += 3 + length;
        size -= 3 + length;
    }
    size_t offset = zip.size;
    put(&zip, directory.data != NULL ? directory.data : data, directory.size);
    put_number(&zip, 0x06054B50, 4);
    put_number(&zip, 0, 4);
    put_number(&zip, members, 2);
    put_number(&zip, members, 2);
    put_number(&zip, directory.size, 4);
    put_number(&zip, offset, 4);
    put_number(&zip, 0, 2);
    free(directory.data);
    return zip;
}

/* -------------------------------------------------------------- what is done */

/* The rows of both parts are the usable ones, and their labels are no more than there are. */
static void judge(const mimus__recording *recording, mimus_illegal illegal) {
    const mimus_schema *schema = mimus__recording_schema(recording);
    const uint64_t samples = mimus__recording_samples(recording);
    mimus__audit audit;
    mimus__split split = {0};
    mimus__statistics statistics = {0};
    fuzz_expect(mimus__audit_run(&audit, recording, illegal, NULL) == MIMUS_OK, "no audit");
    fuzz_expect(audit.samples == samples && audit.dropped <= audit.faulty,
                "samples out of thin air");
    if (mimus__split_new(&split, recording, &audit, 0.3, 1) == MIMUS_OK) {
        fuzz_expect(split.training.samples + split.heldout.samples == samples - audit.dropped,
                    "rows are missing");
        fuzz_expect(split.training.samples > 0 && split.heldout.samples > 0, "an empty part");
        fuzz_expect(mimus__statistics_new(&statistics, recording, &split.training) == MIMUS_OK,
                    "no statistics");
        for (uint32_t h = 0; h < schema->heads; h++)
            fuzz_expect(statistics.labels[h] <= split.training.samples, "too many labels");
        for (uint32_t s = 0; s < schema->senses; s++)
            fuzz_expect(statistics.std[s] >= 0, "an odd deviation");
    }
    mimus__statistics_clear(&statistics);
    mimus__split_clear(&split);
    mimus__audit_clear(&audit);
}

static void exercise(const uint8_t *data, size_t size, const char *const *options) {
    const char *paths[] = {fuzz_path};
    const mimus_source source = {.paths = paths, .count = 1, .format = "npz", .options = options};
    mimus__recording *recording = NULL;
    fuzz_put_file(data, size);
    if (mimus__recording_open(&recording, &source, NULL) != MIMUS_OK) {
        fuzz_expect_message();
        return;
    }
    judge(recording, MIMUS_ILLEGAL_DROP);
    judge(recording, MIMUS_ILLEGAL_IGNORE);
    mimus__recording_free(recording);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const options[][4] = {
        {NULL},
        {"starts=", "indices=", NULL},
        {"masks=", "weights=", NULL},
        {"heads=3", NULL},
        {"heads=a:2,b:5", "masks=", NULL},
        {"senses=action_masks", "masks=obs", NULL},
        {"dones=dones", NULL},
        {"indices=indices", "heads=70", NULL},
    };
    if (size >= 2 && memcmp(data, "PK", 2) == 0) {
        exercise(data, size, NULL);
    } else if (size > 0) {
        bytes zip = zip_of(data + 1, size - 1);
        exercise(zip.data, zip.size, options[data[0] % 8]);
        free(zip.data);
    }
    return 0;
}
