// Package intact keeps folders as they were made: it records the files of a folder, finds
// those that have changed since, and puts them back from a copy.
//
// A record is a file beside the folder, with the digest, size, mode and time of every file.
// A folder of at most SmallBytes is compared by digests each time. A larger one is compared by
// sizes, modes and times, and by digests once a day and where the caller asks for it. What
// Python has compiled for itself, in folders __pycache__, is not looked at.
package intact
