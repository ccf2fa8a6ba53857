package cluster

import (
	"slices"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/serving"
)

// TestManagementURLs: each process has its own scheme, whatever this one has.
func TestManagementURLs(t *testing.T) {
	got := managementURLs([]serving.Endpoint{
		{Addr: "10.0.0.2:1338", Ready: true, Scheme: "https"}, {Addr: "10.0.0.3:1338", Scheme: "https"}, {Addr: "10.0.0.4:1338", Ready: true},
	})
	if want := []string{"https://10.0.0.2:1338", "http://10.0.0.4:1338"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestJudgeBundles(t *testing.T) {
	ready := func(addrs ...string) (list []serving.Endpoint) {
		for _, addr := range addrs {
			list = append(list, serving.Endpoint{Addr: addr, Ready: true})
		}
		return list
	}
	for name, test := range map[string]struct {
		url        string
		management []serving.Endpoint
		machines   int
		want       string // what the error says; empty: there is none
	}{
		"none":                        {"", nil, 2, "none is ready; run the job topsail-web"},
		"none is ready":               {"", []serving.Endpoint{{Addr: "10.0.0.2:1338"}}, 2, "1 management processes, and none is ready"},
		"in the network":              {"", ready("10.0.0.2:1338"), 2, ""},
		"one of them in the network":  {"", ready("127.0.0.1:1338", "10.0.0.2:1338"), 2, ""},
		"on loopback":                 {"", ready("127.0.0.1:1338"), 2, "the management side listens only on 127.0.0.1:1338"},
		"on loopback of IPv6":         {"", ready("[::1]:1338"), 2, "listens only on [::1]:1338"},
		"on loopback of one machine":  {"", ready("127.0.0.1:1338"), 1, ""},
		"on loopback, nodes unknown":  {"", ready("127.0.0.1:1338"), 0, ""},
		"configured":                  {"https://topsail.example:1338", nil, 2, ""},
		"configured on loopback":      {"http://localhost:1338", nil, 2, "on each of the 2 machines is that machine"},
		"configured, of one machine":  {"http://127.0.0.1:1338", nil, 1, ""},
		"configured without a scheme": {"topsail.example:1338", nil, 1, "not a URL such as"},
	} {
		err := judgeBundles(test.url, test.management, test.machines)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}
