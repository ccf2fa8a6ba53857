package cluster

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/topsail-serving/topsail/internal/adapter/consulregistry"
	"github.com/topsail-serving/topsail/internal/adapter/nomadfleet"
	"github.com/topsail-serving/topsail/internal/check"
	"github.com/topsail-serving/topsail/serving"
)

// bundleSource finds out whether replicas can fetch bundles from management.
type bundleSource struct {
	url      string // that is configured; empty: they ask those that Consul names
	client   *consulregistry.Client
	machines func(ctx context.Context) (int, error)
}

func (p *parts) bundleSource(client *consulregistry.Client, fleet *nomadfleet.Fleet) bundleSource {
	return bundleSource{p.Config.Jobs.BundlesURL, client, fleet.Machines}
}

// check says why no replica could fetch a bundle, or nil.
func (b bundleSource) check(ctx context.Context) error {
	machines, err := b.machines(ctx)
	if err != nil {
		return err
	}
	var list []serving.Endpoint
	if b.url == "" {
		if list, err = b.client.Instances(ctx, webService); err != nil {
			return err
		}
	}
	return judgeBundles(b.url, list, machines)
}

// judgeBundles does the same by what is known. machines are those that replicas may run
// on; 0: it is not known.
func judgeBundles(configured string, management []serving.Endpoint, machines int) error {
	if configured != "" {
		u, err := url.Parse(configured)
		switch {
		case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
			return fmt.Errorf("jobs.bundles_url is not a URL such as http://topsail.example:1338: %q", configured)
		case isLoopback(u.Hostname()) && machines > 1:
			return fmt.Errorf("nodes cannot fetch bundles: jobs.bundles_url is %s, which on each of the %d machines is that machine; "+
				"set it to an address that nodes reach, or leave it out to use the management processes in Consul", configured, machines)
		}
		return nil
	}
	ready := slices.DeleteFunc(slices.Clone(management), func(e serving.Endpoint) bool { return !e.Ready })
	switch {
	case len(ready) == 0:
		return fmt.Errorf("nodes cannot fetch bundles: Consul has %d management processes, and none is ready; run the job topsail-web, or set jobs.bundles_url", len(management))
	case machines > 1 && !slices.ContainsFunc(ready, func(e serving.Endpoint) bool { return !isLoopback(hostOf(e.Addr)) }):
		return fmt.Errorf("nodes cannot fetch bundles: the management side listens only on %s, which the others of the %d machines cannot reach; "+
			"run the job topsail-web on an address of the network (-var host_network=…), or set jobs.bundles_url", ready[0].Addr, machines)
	}
	return nil
}

// managementURLs are those that are ready, by the scheme that nodes go by, too.
func managementURLs(list []serving.Endpoint) (urls []string) {
	for _, e := range list {
		if e.Ready {
			urls = append(urls, cmp.Or(e.Scheme, "http")+"://"+e.Addr)
		}
	}
	return urls
}

func hostOf(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	return host
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// noBundle is the digest of nothing that is stored.
var noBundle = "sha256:" + strings.Repeat("0", 64)

// checkBundles asks every management process for a bundle that is not there, as nodes do.
func (c consul) checkBundles(ctx context.Context) []check.Finding {
	const name, next = "bundles", "run the job topsail-web on an address that nodes reach, or set jobs.bundles_url"
	list, broken := c.instances(ctx, name, webService)
	if broken != nil {
		return broken
	}
	configured := c.Config.Jobs.BundlesURL
	if configured == "" && len(list) == 0 {
		return []check.Finding{check.Warning(name, "none is registered as "+webService+", and versions with a bundle do not start", next)}
	}
	machines := 0
	if fleet, err := c.openFleet(nil, nil); err == nil { // what is wrong with Nomad is another check's to say
		machines, _ = fleet.Machines(ctx)
	}
	if err := judgeBundles(configured, list, machines); err != nil {
		return []check.Finding{check.Bad(name, err.Error(), next)}
	}
	from := []string{strings.TrimRight(configured, "/")}
	if configured == "" {
		from = managementURLs(list)
	}
	client, err := c.Client()
	if err != nil {
		return []check.Finding{check.Broken(ctx, name, err, "correct the settings [tls]")}
	}
	for _, one := range from {
		if err := askForBundle(ctx, client, one); err != nil {
			return []check.Finding{check.Broken(ctx, name, err, next)}
		}
	}
	f := check.Good(name, "nodes fetch them from %d management processes, which answer", len(from))
	if configured == "" && len(from) == 1 {
		f.State, f.Detail, f.Next = check.Warn, "nodes fetch them from one management process; while it is unavailable, no replica starts on a new node", "set the count of the job topsail-web to 2, and web.bundles to a store that both share"
	}
	return []check.Finding{f}
}

func askForBundle(ctx context.Context, client *http.Client, from string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from+"/api/v1/artifacts/"+noBundle+"/content", nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusNotFound || !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/") {
		return fmt.Errorf("what answers at %s is not the management side: %s", from, resp.Status)
	}
	return nil
}
