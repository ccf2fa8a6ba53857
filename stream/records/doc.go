// Package records has the records of data streams predicted: each is answered by an app under
// its policy and SLO, and paired with its result by its id. A stream.Job does the rest.
package records
