// Package arch holds the direction of imports: arrows run down only, and each
// third-party library has one home. It holds tests only.
package arch
