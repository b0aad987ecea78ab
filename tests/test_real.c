/* Recordings made by others, trained on directly. They are not part of the repository: without them
 * (the folder MIMUS_SHARED_DATA) there is nothing to do, and the program says so. */
#include "support.h"

#include "file.h"
#include "json.h"
#include "recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void clean(void) {
    test_folder_remove();
}

static double held_out_agreement(const char *file, const char *const (*settings)[2], size_t count) {
    const char *paths[] = {file};
    mimus_source source = {.paths = paths, .count = 1};
    mimus_config *config;
    char *text;
    json_t *eval;
    test_ok(mimus_config_new(&config));
    for (size_t i = 0; i < count; i++)
        test_ok(mimus_config_set(config, settings[i][0], settings[i][1]));
    test_ok(mimus_train(&source, config, test_folder_path("run"), NULL, NULL));
    test_ok(
        mimus_eval(test_folder_path("run"), &source, MIMUS_PART_HELDOUT, NULL, false, NULL, &text));
    test_ok(mimus__json_parse(&eval, text, strlen(text), "eval"));
    const json_t *head = json_array_get(json_object_get(eval, "heads"), 0);
    double agreement = json_number_value(json_object_get(head, "agreement"));
    printf("%s: %.4f held out\n", file, agreement);
    free(text);
    json_decref(eval);
    mimus_config_free(config);
    return agreement;
}

static const char *const small_batches[][2] = {{"batch", "256"}, {"gemm", "tile"}};

START_TEST(stable_baselines_cartpole) {
    double agreement = held_out_agreement(MIMUS_SHARED_DATA "/stable-baselines/expert_cartpole.npz",
                                          small_batches, 2);
    ck_assert_msg(agreement >= 0.97, "%g", agreement);
}
END_TEST

START_TEST(imitation_cartpole) {
    double agreement =
        held_out_agreement(MIMUS_SHARED_DATA "/imitation/cartpole_0-final.npz", small_batches, 2);
    ck_assert_msg(agreement >= 0.77, "%g", agreement);
}
END_TEST

/* The masks count: every first choice is legal, on every position of the recording. */
static void check_choices(const char *file, const char *run) {
    const char *paths[] = {file};
    mimus_source source = {.paths = paths, .count = 1};
    mimus__recording *recording;
    mimus_policy *policy;
    mimus_agent *agent;
    uint64_t checked = 0;
    test_ok(mimus__recording_open(&recording, &source, NULL));
    test_ok(mimus_policy_load(&policy, run));
    test_ok(mimus_agent_new(&agent, policy, 0));
    for (size_t b = 0; b < mimus__recording_blocks(recording); b++) {
        mimus__block block;
        test_ok(mimus__recording_block(recording, b, &block));
        for (uint32_t i = 0; i < block.samples; i++, checked++) {
            uint8_t legal[64];
            uint16_t action;
            for (int a = 0; a < 64; a++)
                legal[a] = block.masks[i * 2 + (uint32_t)a / 32] >> (a % 32) & 1;
            if (mimus_agent_act(agent, block.senses + (size_t)i * 128, legal, &action) !=
                    MIMUS_OK ||
                action >= 64 || !legal[action])
                ck_abort_msg("position %llu: chose %u", (unsigned long long)checked, action);
        }
    }
    ck_assert_uint_eq(checked, 57062);
    mimus_agent_free(agent);
    mimus_policy_free(policy);
    mimus__recording_free(recording);
}

START_TEST(othello_with_its_masks) {
    const char *const settings[][2] = {{"batch", "1024"}, {"gemm", "tile"}, {"epochs", "8"}};
    const char *file = MIMUS_SHARED_DATA "/othello/othello_1985.npz";
    double agreement = held_out_agreement(file, settings, 3);
    ck_assert_msg(agreement >= 0.35, "%g", agreement);
    check_choices(file, test_folder_path("run"));
}
END_TEST

int main(void) {
    if (!mimus__file_is_folder(MIMUS_SHARED_DATA)) {
        printf("no recordings by others here (%s): nothing to test\n", MIMUS_SHARED_DATA);
        return EXIT_SUCCESS;
    }
    Suite *suite = suite_create("real");
    TCase *all = tcase_create("real");
    tcase_add_checked_fixture(all, NULL, clean);
    tcase_add_test(all, stable_baselines_cartpole);
    tcase_add_test(all, imitation_cartpole);
    tcase_add_test(all, othello_with_its_masks);
    suite_add_tcase(suite, all);
    return test_run(suite);
}
