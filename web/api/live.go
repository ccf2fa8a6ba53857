package api

import (
	"context"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/auth"
)

const (
	maxSubscribers = 256
	maxReaders     = 64 // of logs at once
)

// live answers what is about what runs, and has what such answers share.
type live struct {
	*api
	glance  *glance
	hub     *hub
	readers chan struct{} // holds a token for each reader of logs
	over    chan struct{} // is closed when Run ends
}

// Run waits until ctx ends, and then ends the answers that go on, events and logs, so
// that a server that stops need not wait for their clients to leave. It runs once, and
// returns nil. Nothing is looked at while there is no follower of events.
func (a *API) Run(ctx context.Context) error {
	<-ctx.Done()
	close(a.live.over)
	return nil
}

// liveRoutes are the requests about what runs.
func (a *api) liveRoutes() []route {
	look := &glance{look: func(ctx context.Context) Cluster { return a.Cluster(ctx) }, turn: make(chan struct{}, 1)}
	l := &live{api: a, glance: look, hub: &hub{api: a, glance: look}, readers: make(chan struct{}, maxReaders), over: make(chan struct{})}
	a.live = l
	return []route{
		{"GET /events", serving.RoleViewer, l.followEvents, ""},
		{"GET /replicas", serving.RoleViewer, l.listReplicas, ""},
		{"GET /replicas/{replica}", serving.RoleViewer, l.getReplica, ""},
		{"POST /replicas/{replica}/restart", serving.RoleOperator, l.restartReplica, ""},
		{"POST /replicas/{replica}/drain", serving.RoleOperator, l.drainReplica, ""},
		{"GET /replicas/{replica}/logs", serving.RoleViewer, l.readLogs, ""},
		{"GET /decisions", serving.RoleViewer, l.listDecisions, ""},
		{"GET /scheduler", serving.RoleViewer, l.getScheduler, ""},
		{"PUT /cluster/roles/{role}/count", serving.RoleOperator, l.setCount, ""},
		{"GET /cluster", serving.RoleViewer, l.getCluster, ""},
		{"GET /traffic", serving.RoleViewer, l.getTraffic, ""},
		{"GET /apps/{app}/insight", serving.RoleViewer, l.getInsight, ""},
		{"GET /apps/{app}/traffic", serving.RoleViewer, l.getAppTraffic, ""},
		{"GET /models/{model}/versions/{version}/traffic", serving.RoleViewer, l.getVersionTraffic, ""},
		{"GET /models/{model}/versions/{version}/stages", serving.RoleViewer, l.getVersionStages, ""},
		{"POST /apps/{app}/try", serving.RoleOperator, l.tryApp, ""},
	}
}

// holds says whether what let the caller in still does: an answer may go on for long.
func (a *api) holds(c auth.Caller) bool {
	switch {
	case !a.guard.Required():
		return true
	case c.ID == "":
		return len(a.guard.Keys.Digests(c.Name)) > 0
	}
	k := a.Store.Catalog().Keys[c.ID] // a key never changes; it goes
	return k != nil && !k.Expired(a.Now())
}

// checkEvery is how often answers that go on look whether their caller still holds a key.
const checkEvery = time.Second
