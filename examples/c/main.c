/*
 * A program in C with Topsail inside it: it opens a configuration, queries an app, teaches it the answer's label, and closes.
 *
 *	make lib
 *	cc -o ask examples/c/main.c -Ibin -Lbin -ltopsail -Wl,-rpath,$PWD/bin
 *	PATH=$PWD/bin:$PATH ./ask topsail.toml sum '{"input": [1, 2]}' 3
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topsail.h"

/* checked ends the program if a call has failed. */
static void checked(const char *what, char *error) {
	if (error != NULL) {
		fprintf(stderr, "%s: %s\n", what, error);
		topsail_free(error);
		exit(1);
	}
}

int main(int argc, char **argv) {
	if (argc != 5) {
		fprintf(stderr, "usage: ask TOPSAIL.TOML APP BODY LABEL\n");
		return 2;
	}
	char *error = NULL;
	topsail server = topsail_open(argv[1], NULL, NULL, 60000, &error);
	checked("open", error);

	char *answer = topsail_predict(server, argv[2], argv[3], strlen(argv[3]), &error);
	checked("predict", error);
	printf("%s\n", answer);

	/* The answer begins with {"query_id":N, by which feedback is joined with it. A real program reads it with a library. */
	long long query_id = 0;
	sscanf(answer, "{\"query_id\":%lld", &query_id);
	topsail_free(answer);
	char body[256];
	int length = snprintf(body, sizeof body, "{\"query_id\": %lld, \"label\": %s}", query_id, argv[4]);
	if (length < 0 || (size_t)length >= sizeof body) {
		fprintf(stderr, "the label is too long\n");
		return 1;
	}
	char *learned = topsail_feedback(server, argv[2], body, (size_t)length, &error);
	checked("feedback", error);
	printf("%s\n", learned);
	topsail_free(learned);

	topsail_close(server, &error);
	checked("close", error);
	return 0;
}
