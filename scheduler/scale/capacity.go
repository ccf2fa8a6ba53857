package scale

import (
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// maxBatch is the largest batch that a latency line, measured on smaller ones, is
// trusted for.
const maxBatch = 1024

// Capacity is how many queries a second one replica can answer within the SLO: in
// the largest batches that take at most half of it, since a query waits for the
// batch before its own. It is 0 while the line is unknown, or the SLO is. size
// caps the batch; 0 does not.
func Capacity(line serving.LatencyLine, slo time.Duration, size int) float64 {
	if slo <= 0 || line.Took(1) <= 0 {
		return 0
	}
	if size <= 0 {
		size = maxBatch
	}
	n := size
	if line.PerInput > 0 {
		n = min(n, int((slo/2-line.Base)/line.PerInput))
	} else if line.Base > slo/2 {
		n = 1
	}
	n = max(n, 1) // too slow for half the SLO: one by one, and hope
	return float64(n) / line.Took(n).Seconds()
}
