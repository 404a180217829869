/* A training in C: it reports, saves, and goes on from what it saved. */
#define TUNE_REPORT_IMPLEMENTATION
#include <tune_report.h>

#include <stdio.h>
#include <stdlib.h>

static int save(const char* directory, void* user) {
  char name[4096];
  FILE* file;
  snprintf(name, sizeof name, "%s/steps", directory);
  file = fopen(name, "w");
  if (file == NULL) return 1;
  fprintf(file, "%d\n", *(int*)user);
  return fclose(file);
}

static int steps_in(const char* directory) {
  char name[4096];
  FILE* file;
  int steps = -1;
  snprintf(name, sizeof name, "%s/steps", directory);
  file = fopen(name, "r");
  if (file == NULL || fscanf(file, "%d", &steps) != 1) exit(1);
  fclose(file);
  return steps;
}

int main(int argc, char** argv) {
  const double x = argc > 1 ? atof(argv[1]) : 0;
  int steps = 0;
  tune_begin(save, &steps);
  if (tune_checkpoint() != NULL) steps = steps_in(tune_checkpoint());
  do {
    ++steps;
  } while (tune_report_number("loss", x + 1.0 / steps));
  return 0;
}
