/* play.h - samples out of nothing, the same for the policy and for what was exported of it; what
 * each makes of them is printed to the last bit, for cmp. */
#ifndef PLAY_H
#define PLAY_H

#include <stdio.h>

enum { SAMPLES = 2000, EPISODE = 40, MOST = 4096 };

/* In [-1, 1). */
static float play_noise(unsigned long *state) {
    *state = (*state * 1664525UL + 1013904223UL) & 0xffffffffUL;
    return (float)(*state >> 8) / 8388608.0f - 1.0f;
}

/* Senses (count) somewhat beyond what was recorded; every third sample has no mask, in the others
 * every fourth action is forbidden, at times all of a head. Returns whether `legal` (actions)
 * counts. */
static int play_sample(unsigned long index, float *senses, int count, unsigned char *legal,
                       int actions) {
    unsigned long state = index * 7919UL + 1;
    int i;
    for (i = 0; i < count; i++)
        senses[i] = 2 * play_noise(&state);
    for (i = 0; i < actions; i++)
        legal[i] = play_noise(&state) > -0.5f;
    if (index % 50 == 7)
        legal[0] = legal[1] = legal[2] = legal[3] = legal[4] = 0;
    return index % 3 != 0;
}

static void play_print(const unsigned short *actions, const float *values, int heads,
                       const float *probabilities, int count) {
    int i;
    for (i = 0; i < heads; i++)
        printf("%d %a ", actions[i], (double)values[i]);
    for (i = 0; i < count; i++)
        printf("%a ", (double)probabilities[i]);
    putchar('\n');
}

#endif
