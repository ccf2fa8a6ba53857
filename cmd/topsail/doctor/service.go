package doctor

import (
	"context"
	"fmt"

	"github.com/topsail-serving/topsail/containers/upstream"
	"github.com/topsail-serving/topsail/internal/check"
	"github.com/topsail-serving/topsail/serving"
)

const maxReady = 64 << 10

// service checks that the instances of a version that others run are ready, where it names them.
func service(ctx context.Context, v *serving.Version) (found []check.Finding) {
	if service := v.Service.Name; service != "" {
		return []check.Finding{check.Good("model "+v.ModelID.String(), "is the service %q, as Consul has it", service)}
	}
	for _, addr := range v.Service.Addrs {
		name := fmt.Sprintf("model %v at %s", v.ModelID, addr)
		server, err := upstream.New(upstream.Config{URL: v.Service.URL(addr)})
		if err == nil {
			_, err = server.Get(ctx, v.ReadyPath(), check.Within, maxReady)
			server.Close()
		}
		if err != nil {
			found = append(found, check.Broken(ctx, name, err, "start the service, or correct addrs, model or ready_path of the version's service"))
			continue
		}
		found = append(found, check.Good(name, "is ready"))
	}
	return found
}
