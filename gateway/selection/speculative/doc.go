// Package speculative has the policies that ask more than they need, and decide by rule
// when what has come is enough: a fast model that bounds the time of the answer, the
// first answer that is sure enough, a second replica for the slow first, a cascade
// from cheap to expensive models, and a ranked list of which the first that can answer
// in time answers.
//
// They learn nothing. A model that is not ready is asked only if none is.
package speculative
