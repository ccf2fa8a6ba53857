package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// some is the number of connections that keeps four workers busy.
const some = 16

// stages compares a pipeline of two stages that keep a processor busy, with two
// workers each, with the same functions in mosec and called one by one.
func stages(ctx context.Context, b *bench) ([]figure, error) {
	ours := func() (*target, error) {
		return b.stack(ctx, "stages", setup{SLO: relaxed, CacheOff: true, Containers: []string{"stages"}})
	}
	theirs := func() (*target, error) { return b.mosec(ctx) }
	alone := func() (drive, error) { return b.oneByOne(ctx) }
	runs, err := alternate(b.Runs, b.anew(ctx, some, ours), b.anew(ctx, some, theirs), alone)
	if err != nil {
		return nil, err
	}
	p99Over := func(run, other drive) float64 { return p99(run) / p99(other) }
	return []figure{
		sampled("two stages", perSecond, bar{}, runs[0], rate),
		sampled("mosec", perSecond, bar{}, runs[1], rate),
		sampled("the functions one by one, in one process", perSecond, bar{}, runs[2], rate),
		compared("two stages / mosec", times, atLeast(0.95), runs[0], runs[1], rateOver),
		compared("two stages / mosec, p99", times, atMost(1), runs[0], runs[1], p99Over),
		compared("two stages / one by one", times, bar{}, runs[0], runs[2], rateOver),
		sampled("two stages, p99", ms, bar{}, runs[0], p99),
		sampled("mosec, p99", ms, bar{}, runs[1], p99),
		sampled("default outputs", count, none(), runs[0], defaults),
	}, nil
}

// anew starts a target for each run, and stops it: a process keeps the speed that the
// layout of its memory has given it, a few percent more or less, as long as it lives.
func (b *bench) anew(ctx context.Context, connections int, start func() (*target, error)) func() (drive, error) {
	return func() (drive, error) {
		defer b.family.stop()
		t, err := start()
		if err != nil {
			return drive{}, err
		}
		// The many connections of the warm-up leave a queue of a fifth of a second.
		if _, err := b.wrk.run(ctx, t.url, nil, connections, 1); err != nil {
			return drive{}, err
		}
		return b.drive(ctx, t, connections)
	}
}

// stagesPython is the stages with Topsail's package, and mosecPython the same in mosec.
//
//go:embed stages.py
var stagesPython []byte

//go:embed stages_mosec.py
var mosecPython []byte

// stagesFile writes the stages to where Python finds them.
func (b *bench) stagesFile() (string, error) {
	file := filepath.Join(b.dir, "stages.py")
	return file, os.WriteFile(file, stagesPython, 0o600)
}

// mosec starts mosec's server with the stages.
func (b *bench) mosec(ctx context.Context) (*target, error) {
	if _, err := b.stagesFile(); err != nil {
		return nil, err
	}
	file := filepath.Join(b.dir, "stages_mosec.py")
	if err := os.WriteFile(file, mosecPython, 0o600); err != nil {
		return nil, err
	}
	t, err := b.mosecServer(ctx, file)
	if err != nil {
		return nil, err
	}
	return t, b.warm(ctx, t)
}

// mosecServer starts mosec's server with what is in a file.
func (b *bench) mosecServer(ctx context.Context, file string) (*target, error) {
	if out, err := exec.CommandContext(ctx, "python3", "-c", "import mosec").CombinedOutput(); err != nil {
		return nil, errors.New("python3 cannot import mosec: run `make bench`, which installs it, or `pip install -r bench/bars/requirements.txt`: " + lastLine(out))
	}
	ports, err := freePorts(1) // mosec cannot choose one by itself
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "python3", file, "--address", "127.0.0.1", "--port", strconv.Itoa(ports[0]), "--timeout", "10000", "--log-level", "error")
	c, err := b.family.start("mosec", cmd)
	if err != nil {
		return nil, err
	}
	return &target{name: "mosec", url: fmt.Sprintf("http://127.0.0.1:%d/inference", ports[0]), children: []*child{c}}, nil
}

// freePorts are ports that are free.
func freePorts(n int) (ports []int, err error) {
	listeners, err := listen(n)
	for _, ln := range listeners {
		ports = append(ports, ln.Addr().(*net.TCPAddr).Port)
		ln.Close()
	}
	return ports, err
}

// oneByOne calls the functions in one process for a period.
func (b *bench) oneByOne(ctx context.Context) (drive, error) {
	file, err := b.stagesFile()
	if err != nil {
		return drive{}, err
	}
	out, err := exec.CommandContext(ctx, "python3", file, strconv.Itoa(b.Seconds)).Output()
	if err != nil {
		return drive{}, fmt.Errorf("call the stages one by one: %w", err)
	}
	rate, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
	b.say("  %-32s %21.0f/s", "one by one", rate)
	return drive{Rate: rate}, err
}
