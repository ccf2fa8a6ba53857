package main

import (
	"context"
	"fmt"
	"time"
)

const (
	// many is the number of connections of a busy server.
	many = 128
	// wrkThreads is one for each core: a single thread would be the limit of the
	// fastest servers, and make them look alike.
	wrkThreads = cores
)

// drive is one closed-loop run against a target.
type drive struct {
	Rate     float64       // predictions per second; for bare routes, answers; wrong ones do not count
	P50, P99 time.Duration // of all answers
	Defaults int64
	Wrong    int64 // errors, and answers without what the request wants
	Answers  int64
	Elapsed  time.Duration
	CPU      map[string]time.Duration // by process; also "wrk"
}

// drive sends as fast as the connections allow for one period.
func (b *bench) drive(ctx context.Context, t *target, connections int) (drive, error) {
	before, err := t.snapshot(ctx)
	if err != nil {
		return drive{}, err
	}
	r, err := b.wrk.run(ctx, t.url, t.request, connections, b.Seconds)
	if err != nil {
		return drive{}, fmt.Errorf("%s: %w", t.name, err)
	}
	after, err := t.snapshot(ctx)
	if err != nil {
		return drive{}, err
	}
	d := drive{
		P50:      time.Duration(r.P50 * float64(time.Microsecond)),
		P99:      time.Duration(r.P99 * float64(time.Microsecond)),
		Answers:  r.Requests,
		Wrong:    r.Errors.Wrong,
		Defaults: after.answers.since(before.answers).defaults(),
		Elapsed:  time.Duration(r.Took) * time.Microsecond,
		CPU:      map[string]time.Duration{"wrk": r.CPU},
	}
	d.Rate = float64(d.Answers-d.Defaults-d.Wrong) / d.Elapsed.Seconds()
	for name, used := range after.cpu {
		d.CPU[name] = used - before.cpu[name]
	}
	b.say("  %-32s %4d connections: %8.0f/s, p50 %7.2f ms, p99 %7.2f ms, %d defaults, %d wrong", t.name, connections, d.Rate, millis(d.P50), millis(d.P99), d.Defaults, d.Wrong)
	return d, nil
}

// snapshot is what a target's processes have done so far.
type snapshot struct {
	answers answers
	cpu     map[string]time.Duration
}

func (t *target) snapshot(ctx context.Context) (snapshot, error) {
	s := snapshot{cpu: map[string]time.Duration{}}
	var err error
	if t.ops != "" {
		if s.answers, err = countAnswers(ctx, t.ops); err != nil {
			return s, err
		}
	}
	for _, c := range t.children {
		clock := cpuTime
		if t.whole {
			clock = cpuTimeOfAll
		}
		used, err := clock(c.cmd.Process.Pid)
		if err != nil {
			return s, err
		}
		s.cpu[c.name] += used // several processes have the same name
	}
	return s, nil
}

// cpuPerAnswer is the processor time that one process took for an answer, in
// microseconds.
func (d drive) cpuPerAnswer(process string) float64 {
	return d.CPU[process].Seconds() * 1e6 / float64(d.Answers)
}

// cpuOfAll is the processor time that the processes of the target took for a right answer, in microseconds.
func (d drive) cpuOfAll() float64 {
	used := time.Duration(0)
	for process, its := range d.CPU {
		if process != "wrk" {
			used += its
		}
	}
	return used.Seconds() * 1e6 / float64(d.Answers-d.Wrong)
}

// share is the part of a process in the processor time of all.
func (d drive) share(process string) float64 {
	all := time.Duration(0)
	for _, used := range d.CPU {
		all += used
	}
	return float64(d.CPU[process]) / float64(max(all, 1))
}

func millis(d time.Duration) float64 { return d.Seconds() * 1e3 }

func p50(d drive) float64 { return millis(d.P50) }

func p99(d drive) float64 { return millis(d.P99) }

func rate(d drive) float64 { return d.Rate }

func defaults(d drive) float64 { return float64(d.Defaults) }

func wrong(d drive) float64 { return float64(d.Wrong) }
