/* tune_report.h: reports, checkpoints and stops of a training program that runs as a trial of tune.
 * One file for C99 and newer, C++, and by C's calls Fortran; no library. Not needed for reports
 * alone: printing a line   tune: {"loss": 0.5}   does as well.
 *
 * In one source file of the program, before the include:  #define TUNE_REPORT_IMPLEMENTATION
 *
 *   tune_begin(save, &model);                     once; save may be NULL
 *   if (tune_checkpoint()) load(tune_checkpoint());
 *   do {
 *     loss = train_one_epoch();
 *   } while (tune_report_number("loss", loss));    0: the trial is over, clear away and return
 *
 * Without tune the calls do nothing and tune_report_number returns 1: the program runs as before.
 *
 * Fortran:
 *   interface
 *     integer(c_int) function tune_report_number(name, value) bind(c)
 *       import; character(kind=c_char), intent(in) :: name(*); real(c_double), value :: value
 *     end function
 *   end interface
 *   more = tune_report_number("loss" // c_null_char, loss)
 *
 * Speaks version 1 of the contract in trainables/command/README.md. From one thread only. */
#ifndef TUNE_REPORT_H
#define TUNE_REPORT_H

#define TUNE_REPORT_CONTRACT 1

#ifdef __cplusplus
extern "C" {
#endif

/* Writes what the training needs to go on into an existing folder. 0: done; else it failed. */
typedef int (*tune_save_function)(const char* directory, void* user);

/* To be called once, before the first report. Says that this program reads answers and, with
 * `save`, that it can save. 1: it runs under tune; 0: it does not. */
int tune_begin(tune_save_function save, void* user);

/* The folder that the training goes on from; NULL: it begins. */
const char* tune_checkpoint(void);

/* Reports one result and waits for the verdict; may call `save` meanwhile. 1: go on; 0: the trial
 * is over (or tune is gone), return now. The first is a JSON object in one line, the others write
 * one; a number may be NaN or infinite. */
int tune_report_json(const char* object);
int tune_report_number(const char* name, double value);
int tune_report_numbers(int count, const char* const* names, const double* values);

#ifdef __cplusplus
}
#endif
#endif /* TUNE_REPORT_H */

#if defined(TUNE_REPORT_IMPLEMENTATION) && !defined(TUNE_REPORT_IMPLEMENTED)
#define TUNE_REPORT_IMPLEMENTED

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct {
  int fd;     /* -1: not under tune */
  int begun;
  int over;
  tune_save_function save;
  void* user;
} tune_report_state = {-1, 0, 0, NULL, NULL};

/* 0: tune is gone. */
static int tune_report_write(const char* text, size_t length) {
  while (length > 0) {
    const ssize_t sent = send(tune_report_state.fd, text, length, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return 0;
    text += sent;
    length -= (size_t)sent;
  }
  return 1;
}

/* A line without its end, cut to the buffer; 0: tune is gone. */
static int tune_report_read(char* line, size_t size) {
  size_t length = 0;
  for (;;) {
    char byte;
    const ssize_t got = read(tune_report_state.fd, &byte, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return 0;
    if (byte == '\n') break;
    if (length + 1 < size) line[length++] = byte;
  }
  line[length] = 0;
  return 1;
}

int tune_begin(tune_save_function save, void* user) {
  const char* text = getenv("TUNE_FD");
  const char* hello = save ? "hello 1 save\n" : "hello 1\n";
  if (tune_report_state.begun) return tune_report_state.fd >= 0;
  tune_report_state.begun = 1;
  if (text == NULL || *text == 0) return 0;
  tune_report_state.fd = atoi(text);
  tune_report_state.save = save;
  tune_report_state.user = user;
  if (!tune_report_write(hello, strlen(hello))) tune_report_state.over = 1;
  return 1;
}

const char* tune_checkpoint(void) {
  const char* folder = getenv("TUNE_CHECKPOINT");
  return folder != NULL && *folder != 0 ? folder : NULL;
}

static int tune_report_answer(void) {
  static const char saved[] = "saved\n";
  static const char failed[] = "failed the program's save function returned an error\n";
  char line[8192];
  while (tune_report_read(line, sizeof line)) {
    if (strcmp(line, "go") == 0) return 1;
    if (strcmp(line, "stop") == 0) break;
    if (strncmp(line, "save ", 5) == 0 && tune_report_state.save != NULL) {
      const int error = tune_report_state.save(line + 5, tune_report_state.user);
      const char* answer = error ? failed : saved;
      if (!tune_report_write(answer, strlen(answer))) break;
    }
  }
  tune_report_state.over = 1;
  return 0;
}

int tune_report_json(const char* object) {
  if (!tune_report_state.begun) tune_begin(NULL, NULL);
  if (tune_report_state.fd < 0) return 1;
  if (tune_report_state.over) return 0;
  if (!tune_report_write(object, strlen(object)) || !tune_report_write("\n", 1)) {
    tune_report_state.over = 1;
    return 0;
  }
  return tune_report_answer();
}

int tune_report_number(const char* name, double value) {
  return tune_report_numbers(1, &name, &value);
}

int tune_report_numbers(int count, const char* const* names, const double* values) {
  size_t size = 3, length = 0;
  char* line;
  int i, more;
  for (i = 0; i < count; ++i) size += 2 * strlen(names[i]) + 40;
  line = (char*)malloc(size);
  if (line == NULL) return tune_report_state.fd < 0;
  line[length++] = '{';
  for (i = 0; i < count; ++i) {
    const char* c;
    if (i > 0) line[length++] = ',';
    line[length++] = '"';
    for (c = names[i]; *c; ++c) {
      if (*c == '"' || *c == '\\') line[length++] = '\\';
      line[length++] = *c;
    }
    line[length++] = '"';
    line[length++] = ':';
    if (isnan(values[i])) {
      length += (size_t)sprintf(line + length, "NaN");
    } else if (isinf(values[i])) {
      length += (size_t)sprintf(line + length, values[i] > 0 ? "Infinity" : "-Infinity");
    } else {
      length += (size_t)sprintf(line + length, "%.17g", values[i]);
    }
  }
  line[length++] = '}';
  line[length] = 0;
  more = tune_report_json(line);
  free(line);
  return more;
}

#endif
