package obs

import (
	"maps"
	"net/http"
	"slices"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/encoding/protodelim"
)

// some serves the families of some metrics to those who accept FamiliesType and nothing else: what
// Read reads, which costs a small part of gathering all and leaving out the others. Of a histogram, a
// request for sparse ones has the buckets that are not empty, and where each begins. It says whether
// the request was for that.
func (r *Registry) some(w http.ResponseWriter, request *http.Request) bool {
	query := request.URL.Query()
	names, sparse := query["name[]"], query.Get("histograms") == "sparse"
	if len(names) == 0 || request.Header.Get("Accept") != FamiliesType {
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
			f.Metric = append(f.Metric, s.sample(sparse))
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

// sample is the series as the metrics library has it.
func (s *Series) sample(sparse bool) *Sample {
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
		h := &dto.Histogram{SampleCount: new(s.Count()), SampleSum: new(s.Sum)}
		for i, bound := range s.Bounds {
			upTo += s.Counts[i]
			if !sparse || s.Counts[i] > 0 || s.Counts[i+1] > 0 {
				h.Bucket = append(h.Bucket, &dto.Bucket{UpperBound: &bound, CumulativeCount: new(upTo)})
			}
		}
		to.Histogram = h
	}
	return to
}
