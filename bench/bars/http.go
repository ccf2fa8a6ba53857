package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// maxReply bounds what is read of a reply: metrics and profiles are far smaller.
const maxReply = 64 << 20

// get fetches a page of one of our processes.
func get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(io.LimitReader(reply.Body, maxReply))
	if err == nil && reply.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s: %.200s", url, reply.Status, body)
	}
	return body, err
}

// ask sends one query.
func ask(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(queryBody))
	if err != nil {
		return nil, err
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	return io.ReadAll(io.LimitReader(reply.Body, maxReply))
}

// eventually tries something again and again until it works or the time for
// that is over.
func eventually(ctx context.Context, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("not ready within %v: %w", startWithin, err)
		}
	}
}
