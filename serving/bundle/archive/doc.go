// Package archive reads and writes zip archives that come from outside: one file at
// the root, the head, lists all others with their sizes and checksums, and nothing
// else is in the archive. Bundles and wheelhouses are such archives.
//
// Open checks the archive's directory against bounds and against the list without
// unpacking a byte. Verify and Unpack count what they really read, so a file that
// unpacks to more than it says is stopped there.
package archive
