/* verbs - one function a verb, in cmd_<verb>.c. argv[0] is the verb; they give an exit code. */
#ifndef MIMUS_CLI_VERBS_H
#define MIMUS_CLI_VERBS_H

int cmd_devices(int argc, char **argv);
int cmd_import(int argc, char **argv);
int cmd_convert(int argc, char **argv);
int cmd_info(int argc, char **argv);
int cmd_train(int argc, char **argv);
int cmd_eval(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_bench(int argc, char **argv);

#endif
