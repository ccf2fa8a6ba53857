package nvidia

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// ErrInUse says that there are enough GPUs, and that others have them.
var ErrInUse = errors.New("in use")

// Pool gives each GPU to one replica at a time.
type Pool struct {
	list func(context.Context) ([]Device, error)

	mu      sync.Mutex // guards the following, and is held while the GPUs are listed
	holders map[string]string
	freed   chan struct{} // closed when a replica gives GPUs back
}

// NewPool gives what list finds, such as List.
func NewPool(list func(context.Context) ([]Device, error)) *Pool {
	return &Pool{list: list, holders: map[string]string{}, freed: make(chan struct{})}
}

// pollEvery is how often to look for GPUs that were not there.
const pollEvery = 10 * time.Second

// Take waits until the replica of that name can have what it wants, or ctx ends, and returns the
// UUIDs. Each time that it cannot, short gets the reason. Give ends it.
func (p *Pool) Take(ctx context.Context, replica string, want serving.GPU, short func(error)) ([]string, error) {
	for {
		uuids, freed, err := p.take(ctx, replica, want)
		if err == nil {
			return uuids, nil
		}
		short(err)
		select {
		case <-freed:
		case <-time.After(pollEvery):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (p *Pool) take(ctx context.Context, replica string, want serving.GPU) (uuids []string, freed <-chan struct{}, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	devices, err := p.list(ctx)
	if err != nil {
		return nil, p.freed, fmt.Errorf("it needs %s, and %w", words(want), err)
	}
	fit := slices.DeleteFunc(devices, func(d Device) bool { return !d.fits(want) })
	if len(fit) < want.Count {
		return nil, p.freed, fmt.Errorf("it needs %s, and this machine has %s: request what is here, or deploy it to a cluster", words(want), has(len(fit), want))
	}
	free := slices.DeleteFunc(slices.Clone(fit), func(d Device) bool { return p.holders[d.UUID] != "" })
	if len(free) < want.Count {
		return nil, p.freed, fmt.Errorf("it waits for %s, %w by %s: give those or this one fewer replicas", words(want), ErrInUse, p.held(fit))
	}
	// The smallest that fit leave the large ones to replicas that need them.
	slices.SortStableFunc(free, func(a, b Device) int { return cmp.Compare(a.MemoryMB, b.MemoryMB) })
	for _, d := range free[:want.Count] {
		p.holders[d.UUID] = replica
		uuids = append(uuids, d.UUID)
	}
	return uuids, nil, nil
}

// Give gives back what the replica has.
func (p *Pool) Give(replica string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := len(p.holders)
	maps.DeleteFunc(p.holders, func(_, holder string) bool { return holder == replica })
	if len(p.holders) < before {
		close(p.freed)
		p.freed = make(chan struct{})
	}
}

// held names the models that have devices.
func (p *Pool) held(devices []Device) string {
	var names []string
	for _, d := range devices {
		if name := p.holders[d.UUID]; name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	const most = 8
	if names = slices.Compact(names); len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// words are what is wanted.
func words(want serving.GPU) string {
	text := "a GPU"
	if want.Count > 1 {
		text = fmt.Sprintf("%d GPUs", want.Count)
	}
	if want.Device != "" {
		text += " of " + want.Device
	}
	if want.MemoryMB > 0 {
		text += fmt.Sprintf(" with %d MiB", want.MemoryMB)
	}
	return text
}

// has are how many of them there are.
func has(n int, want serving.GPU) string {
	such := ""
	if want.Device != "" || want.MemoryMB > 0 {
		such = " such"
	}
	return fmt.Sprintf("%d%s", n, such)
}
