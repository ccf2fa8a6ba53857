// Package change makes changes of the catalog for requests: planned on the catalog as
// it is, and planned again where somebody else was quicker.
package change
