package batch

import (
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/sidecar/queue"
)

// padding fills batches up to a size, for models that are compiled for one.
type padding struct {
	size  int           // 0: batches stay as they are
	whole []*queue.Item // reused
	extra []queue.Item  // reused
}

// fill is the batch with copies of its first item behind it, whose answers go nowhere. It is
// valid until the next one.
func (p *padding) fill(items []*queue.Item) []*queue.Item {
	if len(items) >= p.size {
		return items
	}
	p.whole = append(p.whole[:0], items...)
	p.extra = p.extra[:0]
	for range p.size - len(items) {
		p.extra = append(p.extra, queue.Item{Deadline: items[0].Deadline, Arrived: items[0].Arrived, Behind: items[0].Behind, Ask: items[0].Ask, From: nowhere{}})
	}
	for i := range p.extra {
		p.whole = append(p.whole, &p.extra[i])
	}
	return p.whole
}

// nowhere takes the answers to padding.
type nowhere struct{}

// Answer implements queue.Asker.
func (nowhere) Answer(*queue.Item, *rpc.Answer) {}
