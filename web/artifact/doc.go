// Package artifact takes bundles in, checks them from their names to their checksums, and
// keeps them in a bucket by their digests, where they never change.
//
// Several processes may share a bucket. What a crash left behind is removed later. Errors
// wrap those that package api has for bundles.
package artifact
