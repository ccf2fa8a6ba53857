// Package rollout has the policies that answer with one model and learn nothing of which
// is best: always the same one, a split between versions of one model that takes back
// a bad canary by itself, and shadows that are asked only to be compared.
package rollout
