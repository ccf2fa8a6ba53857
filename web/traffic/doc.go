// Package traffic reads what processes count, from their metrics, and keeps it for a
// week: what clients asked of each app and got, what each version was asked and could
// do, and what replicas measure. What cannot be read is unknown, never zero.
package traffic
