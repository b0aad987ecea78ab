#include "demo_arena.h"

#include <stddef.h>
#include <stdlib.h>

enum { SMALLEST = 64 << 10, ALIGNMENT = sizeof(max_align_t) };

typedef struct mimus__demo_block {
    struct mimus__demo_block *older;
    size_t used, capacity;
    max_align_t bytes[];
} block;

/* A block behind which the older ones stand, twice as large as the last. */
static block *add_block(mimus__demo_arena *arena, size_t bytes) {
    size_t capacity = arena->block != NULL ? arena->block->capacity * 2 : SMALLEST;
    if (capacity < bytes)
        capacity = bytes;
    block *added = malloc(sizeof *added + capacity);
    if (added == NULL)
        return NULL;
    *added = (block){.older = arena->block, .capacity = capacity};
    arena->block = added;
    return added;
}

static void *take(void *user, size_t bytes) {
    mimus__demo_arena *arena = user;
    block *from = arena->block;
    if (bytes > arena->left) {
        arena->spent = true;
        return NULL;
    }
    arena->left -= bytes;
    bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (from == NULL || from->capacity - from->used < bytes)
        from = add_block(arena, bytes);
    if (from == NULL) {
        arena->spent = true;
        return NULL;
    }
    void *taken = (char *)from->bytes + from->used;
    from->used += bytes;
    return taken;
}

/* Nothing goes back by itself. */
static void give_back(void *user, void *taken) {
    (void)user;
    (void)taken;
}

static void free_blocks(block *newest) {
    while (newest != NULL) {
        block *older = newest->older;
        free(newest);
        newest = older;
    }
}

void mimus__demo_arena_reset(mimus__demo_arena *arena, size_t budget) {
    if (arena->block != NULL) { /* the newest is the largest: it will do for the next message */
        free_blocks(arena->block->older);
        arena->block->older = NULL;
        arena->block->used = 0;
    }
    arena->allocator =
        (ProtobufCAllocator){.alloc = take, .free = give_back, .allocator_data = arena};
    arena->left = budget;
    arena->spent = false;
}

void mimus__demo_arena_clear(mimus__demo_arena *arena) {
    free_blocks(arena->block);
    *arena = (mimus__demo_arena){0};
}
