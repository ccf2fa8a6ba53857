/*
 * Topsail as a library: the apps and models of a configuration, inside this program.
 *
 * Threads: all functions may be called from any thread, and concurrently.
 *
 * Memory: what a function takes stays the caller's, and is not used after it returns. Every string that a function returns,
 * or stores in *error, is the caller's, ends with a zero byte, and goes back with topsail_free.
 *
 * Errors: error may be NULL. Otherwise *error is NULL after a call that succeeded, and else says what is wrong and what to do.
 *
 * Processes: a program that has opened Topsail must not fork() and go on in the child without exec(). The environment is
 * that of when the library was loaded.
 */
#ifndef TOPSAIL_H
#define TOPSAIL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An open Topsail; 0 is none. */
typedef uint64_t topsail;

/* The release of this library. */
char *topsail_version(void);

/*
 * Opens what a configuration file describes, as `topsail local` does, and starts its models. Nothing listens on a port, and
 * there is no management. Returns 0 on failure, and leaves nothing running then.
 *
 * config       the path of the file; NULL: that of TOPSAIL_CONFIG, or topsail.toml in the current folder if there is one.
 * data_dir     the folder for the state and the output of models, which one process uses at a time; NULL: that of the
 *              configuration.
 * program      the path of the program topsail of the same release, which runs the processes of models so that none is left
 *              when this one ends, however it does; NULL: that of PATH.
 * wait_millis  how long to wait until the models are ready, in milliseconds: it fails if they have failed, or are not ready
 *              by then. 0: it does not wait, and apps answer with their defaults meanwhile.
 */
topsail topsail_open(const char *config, const char *data_dir, const char *program, int64_t wait_millis, char **error);

/*
 * Answers a query, or a batch of them, by the app's latency objective. body is the JSON of length bytes that
 * POST /<app>/predict takes, such as {"input": [1.5, 2]}, and the answer the JSON that it answers: a default output is an
 * answer, too. Returns NULL on failure.
 */
char *topsail_predict(topsail handle, const char *app, const char *body, size_t length, char **error);

/*
 * Learns from what is known of answers. body is the JSON of length bytes that POST /<app>/update takes, such as
 * {"query_id": 7, "label": 1}, and the answer the JSON that it answers clients that accept it. What it says is stored.
 * It takes 10 s at the most. Returns NULL on failure.
 */
char *topsail_feedback(topsail handle, const char *app, const char *body, size_t length, char **error);

/*
 * Waits for calls under way, for gateway.drain_timeout_micros at the most (10 s), then stops all that topsail_open started:
 * when it returns, no thread works for it and no process of a model is left. The handle is closed whatever it returns; other
 * calls with it fail. Returns 0, or -1 if something failed on the way.
 */
int topsail_close(topsail handle, char **error);

/* Gives back a string that a function returned; NULL is none. */
void topsail_free(char *text);

#ifdef __cplusplus
}
#endif

#endif
