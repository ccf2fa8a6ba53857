//go:build unix

// Package launch starts the model of a bundle on a node: it unpacks the bundle, finds the
// Python that the bundle was built with, builds the environment that it requires, and
// becomes the model's process.
//
// All of this is kept in a work folder and done once per node:
//
//	bundles/<64 digits>/          the bundle with this digest, unpacked
//	environments/<16 digits>/     a virtual environment, with its record "complete"
//	sdk/<16 digits>/topsail/      the Python SDK
//	wheelhouses/<16 digits>/      wheels to build an environment from, without an index
//
// Beside each folder is a record of its files, by which a start finds what has changed since
// and puts it back: see package intact.
//
// Beside each folder of the first three is a lock, a file that ends with .lock. A process that
// makes the folder holds it exclusively; processes that use it share it. The model's process
// inherits the locks that it shares, so they last as long as it does, and what a launcher started
// inherits the one that it holds, so no folder is repaired that is still written to. The lock's
// time is that of the last start.
package launch
