#include "tune/cli/cli.h"

int main(int argc, char** argv) { return tune::command_line(argc, argv); }
