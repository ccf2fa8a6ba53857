// Package rest is the mechanics of management's HTTP: bodies and patches that are read strictly,
// parameters, pages of lists, entity tags with their conditions, and answers. Errors are problems.
package rest
