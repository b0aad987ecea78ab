#include "tally.h"

#include <math.h>

void tally_add(tally_sums *tally, const uint32_t weights[GAME_ACTIONS],
               const uint16_t actions[GAME_HEADS]) {
    tally->samples++;
    for (int head = 0; head < GAME_HEADS; head++) {
        int first = game_first((game_head)head);
        uint64_t total = expert_total(weights, (game_head)head), most = 0;
        for (int a = first; a < first + game_actions((game_head)head); a++) {
            if (weights[a] == 0)
                continue;
            double probability = (double)weights[a] / (double)total;
            tally->entropy[head] -= probability * log(probability);
            most = weights[a] > most ? weights[a] : most;
        }
        tally->likeliest[head] += (most << 32) / total;
        tally->chosen[first + actions[head]]++;
    }
}

static double mean(const tally_sums *tally, double sum) {
    return tally->samples > 0 ? sum / (double)tally->samples : 0;
}

double tally_ceiling(const tally_sums *tally, game_head head) {
    return mean(tally, (double)tally->likeliest[head] * 0x1p-32);
}

double tally_floor(const tally_sums *tally, game_head head) {
    return mean(tally, tally->entropy[head]);
}

double tally_majority(const tally_sums *tally, game_head head) {
    uint64_t most = 0;
    for (int a = 0; a < game_actions(head); a++) {
        uint64_t count = tally->chosen[game_first(head) + a];
        most = count > most ? count : most;
    }
    return mean(tally, (double)most);
}
