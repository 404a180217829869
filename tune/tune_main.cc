#include "tune/cli.h"

int main(int argc, char** argv) { return tune::command_line(argc, argv); }
