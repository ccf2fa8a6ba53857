// Package models takes model updates from streams: it consumes descriptors of models and
// of ensembles, has a factory make a bundle of each model, and deploys it through the
// management API, as a person would.
//
// A Job goes round as that of package stream does: it polls updates, applies them, and
// commits their acknowledgements together with the updates. What cannot be applied becomes
// a dead letter with its reason. To apply an update again changes nothing, and a version
// carries with it by which update it was made; so a crash at any moment loses nothing and
// does nothing twice.
package models
