// Package auth identifies callers of the management service: by a key, or by the session that a
// key began. It also refuses what the pages of other sites have browsers send.
package auth
