/* commands - the verbs. Each gets its arguments (argv[0] is the verb) and gives an exit code. */
#ifndef ARENA_COMMANDS_H
#define ARENA_COMMANDS_H

int command_record(int argc, char **argv);
int command_play(int argc, char **argv);
int command_watch(int argc, char **argv);

#endif
