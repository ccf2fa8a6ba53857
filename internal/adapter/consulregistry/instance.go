package consulregistry

import (
	"cmp"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/consul/api"

	"github.com/topsail-serving/topsail/serving"
)

// endpoints are the instances of a service by replica, each replica once. Those
// that cannot be dialled are left out.
func endpoints(entries []*api.ServiceEntry) []serving.Endpoint {
	entries = slices.DeleteFunc(slices.Clone(entries), func(e *api.ServiceEntry) bool {
		return e == nil || e.Service == nil || address(e) == "" || replica(e) == ""
	})
	slices.SortFunc(entries, func(a, b *api.ServiceEntry) int {
		return cmp.Or(cmp.Compare(replica(a), replica(b)),
			preference(b, a), cmp.Compare(a.Service.ID, b.Service.ID))
	})
	list := make([]serving.Endpoint, 0, len(entries))
	for _, e := range entries {
		if n := len(list); n > 0 && list[n-1].Replica == replica(e) {
			continue // what is left of it elsewhere
		}
		list = append(list, serving.Endpoint{Replica: replica(e), Addr: address(e), Models: models(e.Service.Meta), Ready: passes(e), Ops: e.Service.Meta["ops_addr"], Scheme: e.Service.Meta["scheme"]})
	}
	return list
}

// preference is positive when a says better than b where their replica is.
func preference(a, b *api.ServiceEntry) int {
	if passes(a) != passes(b) {
		if passes(a) {
			return 1
		}
		return -1
	}
	return cmp.Compare(a.Service.CreateIndex, b.Service.CreateIndex)
}

func replica(e *api.ServiceEntry) string {
	return cmp.Or(e.Service.Meta["replica"], e.Service.Meta["alloc_id"], e.Service.ID)
}

// address is empty when there is none.
func address(e *api.ServiceEntry) string {
	host := e.Service.Address
	if host == "" && e.Node != nil {
		host = e.Node.Address
	}
	if host == "" || e.Service.Port <= 0 {
		return ""
	}
	return net.JoinHostPort(host, strconv.Itoa(e.Service.Port))
}

// passes says whether all checks do, those of the node included.
func passes(e *api.ServiceEntry) bool { return e.Checks.AggregatedStatus() == api.HealthPassing }

// models are what a replica hosts by its meta data: "model" and "version" for one, with the "definition" of it where that is
// known, "models" for several, as in "wine:1,digits:2".
func models(meta map[string]string) []serving.Definition {
	var list []serving.Definition
	add := func(d serving.Definition) {
		if d.Model != "" && d.Version != "" && !slices.ContainsFunc(list, func(has serving.Definition) bool { return has.ModelID == d.ModelID }) {
			list = append(list, d)
		}
	}
	add(serving.Definition{ModelID: serving.ModelID{Model: meta["model"], Version: meta["version"]}, Generation: meta["definition"]})
	for part := range strings.SplitSeq(meta["models"], ",") {
		model, version, _ := strings.Cut(strings.TrimSpace(part), ":")
		add(serving.Definition{ModelID: serving.ModelID{Model: model, Version: version}})
	}
	return list
}
