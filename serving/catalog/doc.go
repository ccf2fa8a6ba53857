// Package catalog changes catalogs. Apply and Merge are pure functions from one
// immutable snapshot to the next, and Diff and Decode turn snapshots into stored
// documents and back; Audit says what a change did, for people. Every store shares them and adds persistence only, so all
// stores keep the same rules. The package imports the standard library and serving.
package catalog
