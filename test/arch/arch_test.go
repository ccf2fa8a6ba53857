package arch

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// rooms are the parts of the house with what each may import of the others, by
// prefix of the package's path. The longest prefix that fits a package is its room.
var rooms = map[string][]string{
	"serving":            {"serving", "internal/schema"},
	"rpc":                {"rpc", "serving", "internal/netio", "internal/sharedmem"},
	"internal/netio":     {},
	"internal/sharedmem": {},
	"internal/schema":    {},
	"internal/durable":   {},
	"internal/retry":     {},
	"internal/check":     {},
	"internal/phase":     {},
	"internal/connlimit": {},
	"internal/obs":       {"internal/connlimit"},
	"internal/process":   {"internal/retry"},
	"bench/load":         {},
	"test/servers":       {},
	"internal/access":    {},
	"internal/release":   {},
	"internal/demand":    {"serving"},
	"internal/activity":  {"internal/obs"},

	"internal/budget":  {}, // of a whole process
	"internal/fair":    {},
	"gateway/dispatch": {"gateway/cache", "gateway/route", "gateway/usage", "rpc", "serving", "internal/fair", "internal/obs", "internal/retry"},
	"gateway":          {"gateway", "rpc", "serving", "internal/schema", "internal/budget", "internal/connlimit", "internal/netio", "internal/obs", "internal/access", "internal/demand", "internal/retry", "internal/condition", "internal/phase"},
	"sidecar":          {"sidecar", "rpc", "serving", "internal/obs", "internal/demand", "internal/fair", "internal/retry"},
	"scheduler":        {"scheduler", "serving", "internal/condition", "internal/obs", "internal/retry"},
	"stream":           {"serving", "internal/condition", "internal/obs", "internal/retry"},
	"stream/mapping":   {"stream", "serving", "rpc"},
	"stream/records":   {"stream", "serving", "internal/obs", "internal/retry"},
	"stream/models":    {"stream", "serving", "internal/obs", "internal/apiclient", "internal/schema"},
	"web":              {"web", "serving", "internal/check", "internal/schema", "internal/obs", "internal/access", "internal/budget", "internal/retry", "internal/durable"},
	"jobs":             {"serving"},
	"containers":       {"containers", "rpc", "serving", "internal/durable", "internal/retry"},

	"internal/adapter/stored":         {"serving"},
	"internal/adapter/filestore":      {"serving", "internal/adapter/stored", "internal/durable"},
	"internal/adapter/s3bucket":       {"serving"},
	"internal/adapter/redisclient":    {},
	"internal/adapter/redisstore":     {"serving", "internal/adapter/redisclient", "internal/adapter/stored", "internal/access", "internal/condition", "internal/durable", "internal/retry"},
	"internal/adapter/consulregistry": {"serving", "internal/access", "internal/retry", "internal/condition"},
	"internal/adapter/influxdb":       {"serving", "internal/access", "internal/activity", "internal/retry"},
	"internal/adapter/nomadfleet":     {"serving", "jobs", "internal/access", "internal/retry"},
	"internal/adapter/kafkastream":    {"serving", "internal/access", "internal/retry"},
	"internal/adapter/schemaregistry": {"stream/mapping"},
	"internal/adapter/redisstream":    {"serving", "internal/adapter/redisclient", "internal/access", "internal/condition", "internal/retry"},
	"internal/adapter/inprocess":      {"serving"},
	"internal/adapter/nvidia":         {"serving"},
	"test/contract":                   {"serving", "internal/retry", "test/require", "test/wait"},
	"test/openapi":                    {},
	"test/brokers":                    {"serving", "internal/adapter/redisclient", "internal/retry"},
	"internal/apiclient":              {"internal/retry"},
	"internal/condition":              {},
	"internal/imports":                {"internal/imports", "serving"},

	"examples":        {"containers", "serving"},
	"examples/embed":  {"containers", "serving", "rpc", "sidecar", "gateway", "cmd/topsail/config", "cmd/topsail/role"}, // as a program of another module
	"cmd":             nil,                                                                                              // assembles everything
	"bench/bars":      nil,                                                                                              // measures everything
	"bench/policies":  nil,                                                                                              // the same, for policies
	"test/devcluster": {"test/servers", "internal/retry"},
	"test/harness":    {"test/servers", "jobs", "serving", "internal/retry"},
	"bench/reports":   {"test/harness", "internal/adapter/redisclient", "internal/adapter/redisstore", "internal/retry", "jobs", "serving"},
	"test/chaos":      {}, // tests alone
	"test/smoke":      {},
	"test/pipes":      {},
	"test/wait":       {},
	"test/require":    {},
	"test/journal":    {},
	"test/edge":       {}, // the same
	"nomad":           {"nomad"},
	"deploy":          {}, // files, and tests
}

// homes are the rooms of third-party libraries. A library that is not here is not
// in use; a new one is recorded in docs/adr/0002-libraries.md with its reason.
var allowed = map[string][]string{
	"github.com/gofiber/fiber/v2":                 {"gateway/httpapi", "bench/bars"},
	"github.com/valyala/fasthttp":                 {"gateway/httpapi", "bench/bars", "test/pipes"},
	"github.com/maypok86/otter/v2":                {"gateway/cache", "gateway/state"},
	"github.com/zeebo/xxh3":                       {"gateway/cache"},
	"github.com/pierrec/lz4/v4":                   {"rpc"},
	"github.com/prometheus/client_golang":         {"internal/obs"},
	"github.com/lmittmann/tint":                   {"internal/obs"},
	"github.com/mattn/go-isatty":                  {"internal/obs"},
	"go.etcd.io/bbolt":                            {"internal/adapter/filestore"},
	"github.com/pelletier/go-toml/v2":             {"cmd/topsail/config"},
	"github.com/spf13/cobra":                      {"cmd/topsail"},
	"github.com/spf13/pflag":                      {"cmd/topsail"},
	"github.com/HdrHistogram/hdrhistogram-go":     {"bench/load", "bench/bars"},
	"github.com/redis/go-redis/v9":                {"internal/adapter/redisclient", "internal/adapter/redisstore", "internal/adapter/redisstream", "test/brokers"},
	"github.com/twmb/franz-go":                    {"test/brokers", "internal/adapter/kafkastream", "internal/adapter/schemaregistry"},
	"github.com/twmb/avro":                        {"stream/mapping"},
	"github.com/bufbuild/protocompile":            {"stream/mapping"},
	"github.com/minio/minio-go/v7":                {"internal/adapter/s3bucket"},
	"github.com/hashicorp/consul/api":             {"internal/adapter/consulregistry", "test/harness"},
	"github.com/hashicorp/nomad/api":              {"jobs", "internal/adapter/nomadfleet", "test/harness", "bench/reports"},
	"github.com/influxdata/influxdb-client-go/v2": {"internal/adapter/influxdb"},
	"pgregory.net/rapid":                          {"gateway/selection/conformance"},
	"github.com/KimMachineGun/automemlimit":       {"cmd/topsail"},
	"golang.org/x/sync":                           {"gateway", "cmd/topsail", "bench/bars", "test/servers"},
	"golang.org/x/net/netutil":                    {"gateway/grpcapi"},
	"golang.org/x/sys":                            {"containers/gocontainer", "internal/process", "internal/sharedmem", "bench/load", "rpc/v1", "bench/bars", "cmd/topsail/admin/screen"},
	"github.com/getkin/kin-openapi":               {"test/openapi"},
	"github.com/prometheus/client_model":          {"internal/obs"},
	"google.golang.org/protobuf":                  {"internal/obs", "stream/mapping", "stream/records", "stream/models", "gateway/grpcapi", "internal/imports"},
	"google.golang.org/grpc":                      {"gateway/grpcapi", "bench/bars"},
	"google.golang.org/genproto/googleapis/rpc":   {"gateway/grpcapi"},
}

const module = "github.com/topsail-serving/topsail"

func TestArrowsRunDown(t *testing.T) {
	for pkg, imports := range list(t) {
		allowed, ok := rooms[room(pkg)]
		if !ok {
			t.Errorf("%s stands in no room: name it in this test, with what it may import", pkg)
			continue
		}
		if allowed == nil {
			continue
		}
		for _, imported := range imports {
			if to, ours := strings.CutPrefix(imported, module+"/"); ours && !slices.ContainsFunc(allowed, func(prefix string) bool { return within(to, prefix) }) {
				t.Errorf("%s imports %s, which stands above it or beside it", pkg, to)
			}
		}
	}
}

func TestEveryLibraryHasItsHome(t *testing.T) {
	for pkg, imports := range list(t) {
		for _, imported := range imports {
			if first, _, _ := strings.Cut(imported, "/"); !strings.Contains(first, ".") || within(imported, module) {
				continue // ours or the standard library's
			}
			home, known := "", false
			for library, packages := range allowed {
				if within(imported, library) {
					home, known = library, slices.ContainsFunc(packages, func(p string) bool { return within(pkg, p) })
				}
			}
			switch {
			case home == "":
				t.Errorf("%s imports %s, which has no recorded reason: see docs/adr/0002-libraries.md", pkg, imported)
			case !known:
				t.Errorf("%s imports %s, whose home is %v", pkg, imported, allowed[home])
			}
		}
	}
}

func room(pkg string) string {
	best := ""
	for r := range rooms {
		if within(pkg, r) && len(r) > len(best) {
			best = r
		}
	}
	return best
}

func within(path, prefix string) bool {
	return path == prefix || strings.HasPrefix(path, prefix+"/")
}

// list is every package of the module, without tests, and what it imports.
func list(t *testing.T) map[string][]string {
	t.Helper()
	out, err := exec.Command("go", "list", "-f", "{{.ImportPath}} {{join .Imports \" \"}}", module+"/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	packages := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		pkg := strings.TrimPrefix(fields[0], module+"/")
		if pkg == "test/arch" || pkg == "test/e2e" {
			continue
		}
		packages[pkg] = fields[1:]
	}
	if len(packages) < 10 {
		t.Fatalf("go list found only %d packages", len(packages))
	}
	return packages
}
