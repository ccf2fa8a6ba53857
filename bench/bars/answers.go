package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// answers are how many answers a gateway gave, by cause.
type answers map[string]int64

func (a answers) defaults() int64 {
	n := int64(0)
	for cause, count := range a {
		if cause != "ok" {
			n += count
		}
	}
	return n
}

// since is what came after an earlier count.
func (a answers) since(before answers) answers {
	d := answers{}
	for cause, count := range a {
		d[cause] = count - before[cause]
	}
	return d
}

// countAnswers asks a gateway's metrics.
func countAnswers(ctx context.Context, ops string) (answers, error) {
	text, err := get(ctx, "http://"+ops+"/metrics")
	if err != nil {
		return nil, err
	}
	return parseAnswers(text)
}

// parseAnswers finds the counters of answers in Prometheus's text format.
func parseAnswers(text []byte) (answers, error) {
	a := answers{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		labels, ok := strings.CutPrefix(lines.Text(), "topsail_gateway_answers_total{")
		if !ok {
			continue
		}
		labels, value, _ := strings.Cut(labels, "} ")
		_, cause, _ := strings.Cut(labels, `cause="`)
		cause, _, _ = strings.Cut(cause, `"`)
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil, fmt.Errorf("metrics: %q: %w", lines.Text(), err)
		}
		a[cause] += int64(n)
	}
	if len(a) == 0 && !bytes.Contains(text, []byte("\ntopsail_gateway_")) { // an app is counted from its first query on
		return nil, errors.New("metrics: this is not a gateway")
	}
	return a, lines.Err()
}
