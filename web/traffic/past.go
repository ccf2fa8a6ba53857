package traffic

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/gob"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// Keeper keeps the past for processes that start, and for each other.
type Keeper interface {
	// LoadTraffic is what was saved last; nil: nothing was.
	LoadTraffic(ctx context.Context) ([]byte, error)
	SaveTraffic(ctx context.Context, past []byte) error
}

const (
	saveEvery  = 5 * time.Minute
	saveWithin = 5 * time.Second
	settling   = 5 * time.Second // what is newer than this may still be counted here

	maxPast    = 8 << 20   // bytes that are kept, compressed
	maxRead    = 256 << 20 // bytes that are read of it
	pastFormat = 1
)

// past is what is kept of the numbers of apps and versions.
type past struct {
	Format   int
	Apps     map[string][]pastChunk
	Versions map[string][]pastChunk // by MODEL:VERSION

	// Added without another format: releases that do not know them skip them.
	Performances []keptPerformance
	Readings     []keptReading
}

// pastChunk is a chunk of one ring.
type pastChunk struct {
	Ring    int
	Index   int64
	Columns map[int][]float32 // those that there are
}

// persist takes over what was saved, closes taken, and saves what is known from time to time
// and at the end of ctx, together with what other processes have saved.
func (c *Collector) persist(ctx context.Context, taken chan<- struct{}) {
	keeper, failing := c.cfg.Keeper, false
	note := func(err error) {
		if err != nil && !failing {
			c.cfg.Log.Warn("the past of the charts cannot be kept; trying again", "in", saveEvery, "err", err)
		}
		failing = err != nil
	}
	found, err := c.load(ctx, keeper)
	if note(err); err == nil && !found {
		c.cfg.Log.Info("the past of the charts begins: none was saved")
	}
	close(taken)
	tick := time.NewTicker(saveEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
		// What others have saved goes first, or it would be lost.
		saving, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveWithin)
		_, err := c.load(saving, keeper)
		if err == nil {
			err = c.save(saving, keeper)
		}
		cancel()
		note(err)
		if ctx.Err() != nil {
			return
		}
	}
}

// load adds what was saved, where something was.
func (c *Collector) load(ctx context.Context, keeper Keeper) (found bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, saveWithin)
	defer cancel()
	text, err := keeper.LoadTraffic(ctx)
	if err != nil || text == nil {
		return false, err
	}
	p, err := readPast(text)
	if err != nil {
		c.cfg.Log.Warn("the past of the charts that was saved cannot be read, and begins anew", "err", err)
		return true, nil
	}
	c.restore(p, time.Now())
	return true, nil
}

func (c *Collector) save(ctx context.Context, keeper Keeper) error {
	text, err := c.snapshot(time.Now()).write()
	if err != nil {
		return err
	}
	if len(text) > maxPast {
		return fmt.Errorf("it has %d bytes, and %d are kept", len(text), maxPast)
	}
	return keeper.SaveTraffic(ctx, text)
}

// snapshot is the past as it is now.
func (c *Collector) snapshot(now time.Time) past {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := past{Format: pastFormat, Apps: map[string][]pastChunk{}, Versions: map[string][]pastChunk{}}
	for name, a := range c.apps {
		p.Apps[name] = a.series.chunks(now)
	}
	for id, v := range c.versions {
		p.Versions[id.String()] = v.series.chunks(now)
	}
	c.knownPerformance(&p)
	return p
}

// restore fills in what is not known here.
func (c *Collector) restore(p past, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.restorePerformance(p)
	for _, name := range slices.Sorted(maps.Keys(p.Apps)) {
		_, had := c.apps[name]
		if a := c.app(name); a != nil {
			a.series.backfill(p.Apps[name], now)
			if !had {
				a.seen = now
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Versions)) {
		model, of, ok := strings.Cut(name, ":")
		if !ok {
			continue
		}
		id := serving.ModelID{Model: model, Version: of}
		_, had := c.versions[id]
		if v := c.version(id); v != nil {
			v.series.backfill(p.Versions[name], now)
			if !had {
				v.seen = now
			}
		}
	}
}

// chunks are copies of those of all rings that are not over the edge.
func (s *series) chunks(now time.Time) []pastChunk {
	var list []pastChunk
	for i := range s {
		r := &s[i]
		oldest := now.Unix()/r.step/perChunk - int64(len(r.chunks))
		for _, c := range r.chunks {
			if c == nil || c.index <= oldest {
				continue
			}
			saved := pastChunk{Ring: i, Index: c.index, Columns: map[int][]float32{}}
			for n, column := range c.columns {
				if column != nil {
					saved.Columns[n] = slices.Clone(column[:])
				}
			}
			list = append(list, saved)
		}
	}
	return list
}

// backfill puts numbers where none are known, but for what is newest.
func (s *series) backfill(list []pastChunk, now time.Time) {
	until := now.Add(-settling).Unix()
	for _, saved := range list {
		if saved.Ring < 0 || saved.Ring >= len(s) {
			continue
		}
		r := &s[saved.Ring]
		if saved.Index < 0 || saved.Index > now.Unix()/r.step/perChunk || saved.Index <= now.Unix()/r.step/perChunk-int64(len(r.chunks)) {
			continue
		}
		for n, column := range saved.Columns {
			if n < 0 || n >= r.columns || len(column) != perChunk {
				continue
			}
			for i, x := range column {
				second := (saved.Index*perChunk + int64(i)) * r.step
				if x != x || second+r.step > until {
					continue
				}
				if cell := r.cell(n, second); cell != nil && *cell != *cell {
					*cell = x
				}
			}
		}
	}
}

func (p past) write() ([]byte, error) {
	var text bytes.Buffer
	zip := gzip.NewWriter(&text)
	if err := gob.NewEncoder(zip).Encode(p); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	return text.Bytes(), nil
}

func readPast(text []byte) (past, error) {
	var p past
	zip, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return p, err
	}
	// At its end is the checksum. What is damaged must not be decoded: it could say that it is of any size.
	switch n, err := io.Copy(io.Discard, io.LimitReader(zip, maxRead+1)); {
	case err != nil:
		return p, err
	case n > maxRead:
		return p, fmt.Errorf("it has more than %d bytes unpacked", maxRead)
	}
	if err := zip.Reset(bytes.NewReader(text)); err != nil {
		return p, err
	}
	if err := gob.NewDecoder(zip).Decode(&p); err != nil {
		return p, err
	}
	if p.Format != pastFormat {
		return p, fmt.Errorf("it has format %d, and this release reads %d", p.Format, pastFormat)
	}
	return p, nil
}
