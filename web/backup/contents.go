package backup

import "time"

// format is the version of the archive. Members and fields may be added within one.
const format = 1

// Contents say what is in a backup.
type Contents struct {
	Format       int       `json:"format"`
	Made         time.Time `json:"made"`
	Release      string    `json:"release"` // that made it
	Mode         string    `json:"mode"`    // "local" or "cluster"
	Revision     uint64    `json:"revision"`
	QueryIDBlock uint32    `json:"query_id_block"` // above all that were leased before
	Apps         int       `json:"apps"`
	Models       int       `json:"models"`
	Versions     int       `json:"versions"`
	Keys         int       `json:"keys"`
	Streams      int       `json:"streams"`
	States       int       `json:"states"` // selection states
	Usage        int       `json:"usage"`
	Entries      int       `json:"audit_entries"`
	Bundles      []Bundle  `json:"bundles"`
}

// Bundle is one of the store's when the backup was made.
type Bundle struct {
	Digest   string `json:"digest"`
	Size     int64  `json:"size"`
	Included bool   `json:"included"`
}

// The members of the archive, in their order.
const (
	contentsName = "contents.json"
	stateName    = "state.jsonl.gz"
	bundlesDir   = "bundles/"
	sumsName     = "SHA256SUMS"
)
