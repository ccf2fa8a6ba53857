package inspect

import (
	"math"
	"time"

	"github.com/topsail-serving/topsail/gateway/predict"
)

// latency is a histogram of times as the page has it, in microseconds.
type latency struct {
	Unit   string `json:"unit"`
	Size   string `json:"size"`
	Min    string `json:"min"`
	Max    string `json:"max"`
	Mean   string `json:"mean"`
	StdDev string `json:"std_dev"`
	P50    string `json:"p50"`
	P95    string `json:"p95"`
	P99    string `json:"p99"`
}

// spread says how times are spread. The percentiles and the deviation are estimates:
// the times are counted in buckets.
func spread(t predict.Times) latency {
	mean := 0.0
	if t.Count > 0 {
		mean = micros(t.Sum) / float64(t.Count)
	}
	return latency{
		Unit: "microseconds", Size: whole(t.Count), Min: whole(uint64(t.Least.Microseconds())), Max: whole(uint64(t.Most.Microseconds())),
		Mean: decimal(mean), StdDev: decimal(deviation(t, mean)),
		P50: decimal(percentile(t, 0.5)), P95: decimal(percentile(t, 0.95)), P99: decimal(percentile(t, 0.99)),
	}
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// edges are the bounds of a bucket in microseconds, as far as there are times in it.
func edges(t predict.Times, b predict.Bucket) (from, to float64) {
	from, to = micros(max(t.Least, b.Above)), micros(min(t.Most, b.UpTo))
	return min(from, to), to
}

// percentile takes the times of a bucket to be spread evenly over it.
func percentile(t predict.Times, rank float64) float64 {
	left := rank * float64(t.Count)
	for _, b := range t.Buckets {
		if n := float64(b.Count); n > 0 && left <= n {
			from, to := edges(t, b)
			return from + (to-from)*left/n
		}
		left -= float64(b.Count)
	}
	return 0
}

// deviation takes the times of a bucket to be in its middle.
func deviation(t predict.Times, mean float64) float64 {
	if t.Count == 0 {
		return 0
	}
	sum := 0.0
	for _, b := range t.Buckets {
		from, to := edges(t, b)
		off := (from+to)/2 - mean
		sum += float64(b.Count) * off * off
	}
	return math.Sqrt(sum / float64(t.Count))
}
