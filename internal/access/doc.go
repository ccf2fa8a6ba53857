// Package access decides which requests are allowed: certificates for both ends of a TLS
// connection, tokens that processes show each other, keys that clients show, and the rule that
// none of our addresses is open to the network without them.
//
// All of them come from files, and a file that changes takes effect at the next handshake or
// check, at most a second later. Nothing runs in the background: each use checks the file first,
// at most once a second. A new file that cannot be used is logged once and changes nothing; what
// the old one held stays in use. Connections that are open stay open.
package access
