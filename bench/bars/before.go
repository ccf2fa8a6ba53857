package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// before compares the path of today's queries with the same path in a build of an earlier commit. Each is Topsail in local
// mode with the no-op container of this program.
func before(ctx context.Context, b *bench) ([]figure, error) {
	const ratio = "now / before"
	notSlower := atLeast(0.98)
	if b.before == "" {
		return []figure{absent(ratio, times, notSlower, "name a build of an earlier commit: -before PROGRAM")}, nil
	}
	build, err := b.topsail(ctx)
	if err != nil {
		return nil, err
	}
	earlier, err := filepath.Abs(b.before)
	if err != nil {
		return nil, err
	}
	runs, err := alternate(b.Runs,
		b.anew(ctx, many, func() (*target, error) { return b.vectors(ctx, "now", build) }),
		b.anew(ctx, many, func() (*target, error) { return b.vectors(ctx, "before", earlier) }))
	if err != nil {
		return nil, err
	}
	now, then := runs[0], runs[1]
	return []figure{
		sampled("POST /APP/predict, 4 doubles", perSecond, bar{}, now, rate),
		sampled("before", perSecond, bar{}, then, rate),
		compared(ratio, times, notSlower, now, then, rateOver),
		sampled("p99", ms, bar{}, now, p99),
		sampled("before, p99", ms, bar{}, then, p99),
		sampled("processor time of an answer", micros, bar{}, now, drive.cpuOfAll),
		compared("now / before, processor time", times, bar{}, now, then, cpuOver),
		sampled("errors and default outputs", count, none(), append(now, then...), wrong),
	}, nil
}

// vectors runs a build of Topsail with an app of vectors.
func (b *bench) vectors(ctx context.Context, name, program string) (*target, error) {
	noop, err := json.Marshal(setup{Containers: []string{"noop"}})
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(b.dir, "vectors")
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "topsail.toml")
	text := fmt.Sprintf("[[app]]\nname = %q\ninput_type = \"doubles\"\nlatency_slo_micros = %d\nmodels = [\"noop\"]\ndefault_output = \"-1\"\ncache = { off = true }\n"+
		"[[model]]\nname = \"noop\"\nversion = \"1\"\ninput_type = \"doubles\"\ncommand = [%q, \"-role\", \"container\", \"-config\", %q]\n",
		appName, relaxed.Microseconds(), b.self, noop)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	l, err := b.localOf(ctx, program, dir, config)
	if err != nil {
		return nil, err
	}
	t := &target{name: name, url: l.query + queryPath, children: []*child{l.child}, whole: true, request: &request{body: []byte(queryBody), want: rightOutput}}
	return t, b.warm(ctx, t)
}
