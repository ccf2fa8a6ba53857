// Package arch holds the direction of imports: arrows run down only, and each
// third-party library has one home. It also holds the words, comments and weight of the code, and the
// circles of tests. It has tests only.
package arch
