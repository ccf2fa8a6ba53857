// Package artifact keeps bundles in a folder of the management service: one file each,
// named by its digest. What is there has been checked from its names to its checksums,
// and never changes.
//
// One process owns the folder. It holds nothing else: what a crash left behind there is
// removed when the store is opened. Errors wrap those that package api has for bundles.
package artifact
