/* godot - recorded demonstrations of Godot RL Agents, as JSON. */
#ifndef MIMUS_DATA_GODOT_H
#define MIMUS_DATA_GODOT_H

#include "reader.h"

extern const mimus__reader mimus__godot_reader;

#endif
