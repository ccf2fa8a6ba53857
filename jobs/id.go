package jobs

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/topsail-serving/topsail/serving"
)

const (
	// Prefix begins the id of every job of a model version.
	Prefix = "topsail-"
	// Group is the one group of such a job, and Sidecar and Container are its tasks.
	// A container that listens by itself has no task.
	Group     = "replica"
	Sidecar   = "sidecar"
	Container = "container"
)

// Keys of a job's meta.
const (
	MetaModel      = "topsail_model"
	MetaVersion    = "topsail_version"
	MetaGeneration = "topsail_generation" // see Generation
	MetaSettings   = "topsail_settings"   // hash of the settings
	MetaSpec       = "topsail_spec"       // see Hash
)

// ID is the id of the job of a version. The hash keeps apart what a name alone
// cannot, since versions may hold letters that ids of jobs should not.
func ID(id serving.ModelID) string {
	return Prefix + id.Model + "-" + hash(id.String())
}

// hash is 8 hexadecimal digits of s's SHA-256.
func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:4])
}
