package obs

import (
	"maps"
	"net/http"
	"slices"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/encoding/protodelim"
)

// some serves the families of some metrics to those who accept FamiliesType and nothing else: what
// Read reads, which costs a small part of gathering all and leaving out the others. It says whether
// the request was for that.
func (r *Registry) some(w http.ResponseWriter, request *http.Request) bool {
	names := request.URL.Query()["name[]"]
	if len(names) == 0 || request.Header.Get("Accept") != FamiliesType || slices.ContainsFunc(names, isOldName) {
		return false
	}
	families := map[string]*Family{}
	readers := make(Readers, len(names))
	for _, name := range names {
		readers[name] = func(s *Series) {
			f := families[name]
			if f == nil {
				f = &Family{Name: &name, Type: s.kind.Enum()}
				families[name] = f
			}
			f.Metric = append(f.Metric, s.sample())
		}
	}
	r.Read(readers)
	w.Header().Set("Content-Type", FamiliesType)
	for _, name := range slices.Sorted(maps.Keys(families)) {
		if _, err := protodelim.MarshalTo(w, families[name]); err != nil {
			return true // the client has gone
		}
	}
	return true
}

func isOldName(name string) bool {
	for _, old := range renamed {
		if name == old {
			return true
		}
	}
	return false
}

// sample is the series as the metrics library has it.
func (s *Series) sample() *Sample {
	to := &Sample{Label: make([]*dto.LabelPair, len(s.names))}
	for i, name := range s.names {
		to.Label[i] = &dto.LabelPair{Name: &name, Value: new(s.values[i])}
	}
	switch s.kind {
	case dto.MetricType_COUNTER:
		to.Counter = &dto.Counter{Value: new(s.Value)}
	case dto.MetricType_GAUGE:
		to.Gauge = &dto.Gauge{Value: new(s.Value)}
	default:
		upTo := uint64(0)
		h := &dto.Histogram{SampleCount: new(s.Count()), SampleSum: new(s.Sum), Bucket: make([]*dto.Bucket, len(s.Bounds))}
		for i, bound := range s.Bounds {
			upTo += s.Counts[i]
			h.Bucket[i] = &dto.Bucket{UpperBound: &bound, CumulativeCount: new(upTo)}
		}
		to.Histogram = h
	}
	return to
}
