/* demo_arena - the memory of one decoded message: handed out in order, within a budget, and taken
 * back at once. A few bytes of a hostile file can stand for many times their size in objects; here
 * they run against the budget. */
#ifndef MIMUS_DATA_DEMO_ARENA_H
#define MIMUS_DATA_DEMO_ARENA_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>

struct mimus__demo_block;

/* Zeroed to begin with. Must not move while messages are in it. */
typedef struct mimus__demo_arena {
    ProtobufCAllocator allocator; /* what protobuf-c is given; reset fills it in */
    struct mimus__demo_block *block;
    size_t left; /* of the budget */
    bool spent;  /* something was refused since the last reset */
} mimus__demo_arena;

/* Take everything back; from now on `budget` bytes are to be had. */
void mimus__demo_arena_reset(mimus__demo_arena *arena, size_t budget);
void mimus__demo_arena_clear(mimus__demo_arena *arena);

#endif
