// Package models takes model updates from streams: it reads descriptors of models, of
// ensembles and of what else may change, has a factory make a bundle of each model, and deploys it
// through the management API, as a person would. A stream.Job does the rest.
//
// To apply an update again changes nothing, and a version carries with it by which update it
// was made; so a crash at any moment loses nothing and does nothing twice.
package models
