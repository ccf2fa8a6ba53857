// Package change makes changes of the catalog for requests: planned on the catalog as
// it is, and planned again where another was quicker.
package change
