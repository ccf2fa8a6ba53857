package redisstore

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"

	"github.com/topsail-serving/topsail/serving"
)

// keys are the names of what is in Redis. Their common hash tag puts them on one
// node of a Cluster, where scripts may use several at once. What grows with users and
// queries has names of its own, which spread over the nodes: see the methods.
type keys struct {
	prefix string

	catalog   string // hash: the documents and the position of the catalog
	log       string // stream: a change each, with ids of the form REVISION-0
	lease     string // number: the last block of query ids
	fence     string // number: the highest fencing token that has written
	decisions string // stream
	audit     string // stream
	wakes     string // stream
	bundles   string // hash: the bundles in this Redis, with their sizes
	traffic   string // text: the past of the charts, compressed
	unused    string // hash: the bundles that no version uses, by since when
	remedy    string // text: what an operator asks for
	alarm     string // text: that of a process that runs, for some seconds
}

// How many entries the streams keep, about.
const (
	keptChanges   = 10_000
	keptDecisions = 10_000
	keptEntries   = serving.MaxAudit
	keptWakes     = 1_000
)

func newKeys(prefix string) keys {
	prefix = cmp.Or(prefix, "topsail")
	tag := "{" + prefix + "}:"
	return keys{
		prefix:    prefix,
		catalog:   tag + "catalog",
		log:       tag + "log",
		lease:     tag + "query_id_block",
		fence:     tag + "fence",
		decisions: tag + "decisions",
		audit:     tag + "audit",
		wakes:     tag + "wakes",
		bundles:   tag + "bundles",
		traffic:   prefix + ":traffic",
		unused:    tag + "unused_bundles",
		remedy:    tag + "remedy",
		alarm:     tag + "alarm",
	}
}

// usage is a hash: what came of an app or a model version, when that was registered and
// at which revision. It is on the node of the catalog, with which it goes.
func (k keys) usage(object serving.UsageKey) string {
	return "{" + k.prefix + "}:usage:" + object.Object().String()
}

// usageWriter is a number: that of the last report of a process.
func (k keys) usageWriter(name string) string { return "{" + k.prefix + "}:usage_writer:" + name }

// bundle is a piece of a bundle's archive.
func (k keys) bundle(hex string, n int) string {
	return fmt.Sprintf("%s:bundle:{%s:%d}", k.prefix, hex, n)
}

// secret is a text that processes have in common.
func (k keys) secret(name string) string { return k.prefix + ":secret:" + name }

// state is a hash: the text of a selection state, its newest revisions, and its key.
// Whatever is in the names of users comes into it as a hash.
func (k keys) state(key serving.StateKey) string {
	return k.prefix + ":state:{" + stateHash(key) + "}"
}

// aside is a new name for a state that is no good, on the same node.
func (k keys) aside(key serving.StateKey) string { return k.state(key) + ":aside:" + rand.Text() }

// states is a sorted set: the keys of an app's states, by when they were changed.
func (k keys) states(app string) string { return k.prefix + ":states:{" + url.QueryEscape(app) + "}" }

// asides is a sorted set: the names of what was set aside of an app, by when.
func (k keys) asides(app string) string { return k.prefix + ":asides:{" + url.QueryEscape(app) + "}" }

// record is a text, the record that has this place in its app, and learned is the id
// of the query in that place that feedback was learned of.
func (k keys) record(app string, slot int) string  { return k.slot("record", app, slot) }
func (k keys) learned(app string, slot int) string { return k.slot("learned", app, slot) }

// newest is a text: what the newest of some answers was to, and its query id.
func (k keys) newest(app string, slot int) string { return k.slot("newest", app, slot) }

func (k keys) slot(what, app string, slot int) string {
	return fmt.Sprintf("%s:%s:{%s:%d}", k.prefix, what, url.QueryEscape(app), slot)
}

func stateHash(key serving.StateKey) string {
	sum := sha256.Sum256([]byte(key.String()))
	return hex.EncodeToString(sum[:16])
}
