package serving

import (
	"encoding/json"
	"time"
)

// Author is the user or program that makes a change.
type Author struct {
	Who    string // the name of a key; "local" where there are no keys; ByFile or "scheduler" for those
	From   string // address of the client; empty for ourselves
	Client string // program that asks, as it names itself; empty for ourselves
}

// ByFile is the author of changes that the configuration file makes.
const ByFile = "file"

// AuditEntry is one change of one object.
type AuditEntry struct {
	ID       string          `json:"id"` // grows with time; the store gives it
	At       time.Time       `json:"at"`
	Who      string          `json:"who"`
	From     string          `json:"from,omitempty"`
	Client   string          `json:"client,omitempty"` // program that asked, as it names itself
	Action   string          `json:"action"`           // "create", "update", "delete", "restart", "drain", "upload", "forget", "backup", "restore" or "recover"
	Kind     string          `json:"kind"`             // "app", "model", "version", "replica", "artifact", "key", "learned", "stream" or "backup"
	Name     string          `json:"name"`
	Before   json.RawMessage `json:"before,omitempty"` // the object as it is stored, without secrets
	After    json.RawMessage `json:"after,omitempty"`
	Revision uint64          `json:"revision,omitempty"` // of the catalog with the change
}

// AuditQuery says which entries, the newest first. Zero fields take all.
type AuditQuery struct {
	Kind, Name, Who string
	Model           string // of this model: those of which version is current, and of versions that come and go
	Before          string // the ID that entries must be older than
	Limit           int    // at least 1
}

// MaxAudit is how many entries a store keeps at least; older ones go.
const MaxAudit = 20_000
