package redisstore

import "cmp"

// keys are the names of what is in Redis. Their common hash tag puts them on one
// node of a Cluster, where scripts may use several at once.
type keys struct {
	catalog   string // hash: the documents and the position of the catalog
	log       string // stream: a change each, with ids of the form REVISION-0
	lease     string // number: the last block of query ids
	fence     string // number: the highest fencing token that has written
	decisions string // stream
	wakes     string // stream
	remedy    string // text: what an operator asks for
	alarm     string // text: that of a process that runs, for some seconds
}

// How many entries the streams keep, about.
const (
	keptChanges   = 10_000
	keptDecisions = 10_000
	keptWakes     = 1_000
)

func newKeys(prefix string) keys {
	tag := "{" + cmp.Or(prefix, "topsail") + "}:"
	return keys{
		catalog:   tag + "catalog",
		log:       tag + "log",
		lease:     tag + "query_id_block",
		fence:     tag + "fence",
		decisions: tag + "decisions",
		wakes:     tag + "wakes",
		remedy:    tag + "remedy",
		alarm:     tag + "alarm",
	}
}
