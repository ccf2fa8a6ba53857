package clipper

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/topsail-serving/topsail/serving"
)

// containerInfo is a replica as Clipper shows it.
type containerInfo struct {
	ID        string            `json:"model_id"`
	Name      string            `json:"model_name"`
	Version   string            `json:"model_version"`
	Replica   int               `json:"model_replica_id"`
	InputType serving.InputType `json:"input_type"`
}

// ready lists the ready replicas by version. Each version's are numbered from 0 on, in
// the order of their names.
func (a *admin) ready() []containerInfo {
	replicas := slices.Clone(a.Replicas())
	slices.SortFunc(replicas, func(a, b serving.Endpoint) int { return strings.Compare(a.Replica, b.Replica) })
	cat, count := a.Store.Catalog(), map[serving.ModelID]int{}
	infos := []containerInfo{}
	for _, replica := range replicas {
		for _, d := range replica.Models {
			if v := cat.Version(d.ModelID); v != nil && replica.Ready && d.Defines(v) {
				infos = append(infos, containerInfo{v.String(), v.Model, v.Version, count[v.ModelID], v.InputType})
				count[v.ModelID]++
			}
		}
	}
	slices.SortStableFunc(infos, func(a, b containerInfo) int { return strings.Compare(a.ID, b.ID) })
	return infos
}

func (a *admin) containers(_ context.Context, r request) (string, error) {
	infos := a.ready()
	if r.flag("verbose") {
		return answer(infos)
	}
	names := []string{}
	for _, c := range infos {
		names = append(names, c.ID+":"+strconv.Itoa(c.Replica))
	}
	return answer(names)
}

func (a *admin) container(_ context.Context, r request) (string, error) {
	id := versionID(r).String()
	for _, c := range a.ready() {
		if c.ID == id && c.Replica == r.number("replica_id") {
			return answer(c)
		}
	}
	return nothing, nil
}
