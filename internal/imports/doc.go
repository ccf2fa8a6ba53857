// Package imports reads what MLServer, Triton and TorchServe serve from, into bundles with signatures and what else makes
// a version. What it cannot bring it names. The files are untrusted: all that is read has a bound.
package imports
