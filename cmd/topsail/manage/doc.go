// Package manage puts the management side together from parts that local mode and a
// cluster have in common.
package manage
