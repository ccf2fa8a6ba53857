// Package backup writes what a Topsail knows to one file, and brings it back: the catalog
// with its keys, what policies have learned, usage, the audit log, and bundles.
//
// A backup is a tar archive: contents.json, then state.jsonl.gz with an Item to a line, then
// bundles/HEX.zip for each bundle, and SHA256SUMS of all of these at the end, by which one
// that is cut short or damaged is found. It holds hashes of keys and variables of models: it
// is as secret as they are.
package backup
