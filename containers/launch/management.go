//go:build unix

package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"time"
)

const (
	managementWithin = time.Minute // Consul may just not have heard of a process that starts
	retryManagement  = 500 * time.Millisecond
)

// Sources are the URLs of a bundle at the management processes that a file names, which
// Nomad writes from what Consul knows: a line for each, such as "http 10.0.0.2 1338". They
// are in a random order, so that nodes spread over them. It waits for the first one.
func Sources(ctx context.Context, file, digest string, log io.Writer) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, managementWithin)
	defer cancel()
	retryEvery := time.NewTicker(retryManagement)
	defer retryEvery.Stop()
	for waits := false; ; waits = true {
		text, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("cannot read the address of the management service: %w", err)
		}
		if urls := sources(string(text), digest); len(urls) > 0 {
			return urls, nil
		}
		if !waits {
			fmt.Fprintln(log, "waiting for a ready management process in Consul")
		}
		select {
		case <-retryEvery.C:
		case <-ctx.Done():
			return nil, errors.New("no ready management process is in Consul to fetch the bundle from: " +
				"run the job topsail-web, let tasks read the service topsail-web where Consul has access control, or set jobs.bundles_url")
		}
	}
}

func sources(text, digest string) []string {
	var urls []string
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 3 {
			urls = append(urls, f[0]+"://"+net.JoinHostPort(f[1], f[2])+"/api/v1/artifacts/"+digest+"/content?redirect=true")
		}
	}
	rand.Shuffle(len(urls), func(i, j int) { urls[i], urls[j] = urls[j], urls[i] })
	return urls
}
