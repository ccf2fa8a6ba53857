// Package scheduler sets, out of band, how many replicas every model version has.
//
// A Scheduler leads for one term at a time. In it, one goroutine owns everything
// that is known: the demand of the last two minutes (package window), the catalog,
// the jobs, and which replicas are ready. It decides 200 ms after each whole
// second, when the demand of that second is in, and at once when a gateway has
// queries and no replica, when the catalog changes, and when jobs do. How many
// replicas there shall be is a pure function (package scale). What follows from a
// decision is done by others, a few at a time, so that a slow change of one
// version never holds up another. Reading, too, is done by others.
//
// What is not known is never acted upon: without demand counts stay, without the jobs nothing is
// changed, and without a valid term no change is requested.
package scheduler
