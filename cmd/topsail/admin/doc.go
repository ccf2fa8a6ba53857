// Package admin is the command line over the management API: nouns with verbs, deploying
// and asking, and a live table. Tables are for people, -o json is the API's own JSON for
// programs, and the exit status says what kind of thing went wrong; see Exit.
package admin
