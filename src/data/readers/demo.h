/* demo - recordings of Unity ML-Agents. */
#ifndef MIMUS_DATA_DEMO_H
#define MIMUS_DATA_DEMO_H

#include "reader.h"

extern const mimus__reader mimus__demo_reader;

#endif
