package servers

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// answers makes a readiness check of a path: its answer must contain want.
func answers(path, want string) func(ctx context.Context, addr string) error {
	return func(ctx context.Context, addr string) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+path, nil)
		if err != nil {
			return err
		}
		return check(req, want)
	}
}

// check makes a request, whose answer must contain want.
func check(req *http.Request, want string) error {
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 || !strings.Contains(string(body), want) {
		return fmt.Errorf("GET %s: %s: %.200s", req.URL.Path, resp.Status, body)
	}
	return nil
}
