package local

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/internal/phase"
	"github.com/topsail-serving/topsail/serving"
)

// greet says what is being waited for, and when everything is ready how to ask.
func greet(out io.Writer, v *view, scheme string, l *listeners) phase.Job {
	return func(ctx context.Context) error {
		start := time.Now()
		missing, linked := v.awaitModels(ctx, out)
		if ctx.Err() != nil {
			return nil
		}
		for _, m := range missing {
			fmt.Fprintf(out, "%v has failed, and is tried again: %s (see `topsail logs %[1]v`)\n", m.id, m.why)
		}
		apps, state := v.store.Catalog().Apps, fmt.Sprintf("Topsail is ready after %.1f s.", time.Since(start).Seconds())
		if linked > 0 && len(missing) == linked {
			state = "Topsail runs, but no model is ready: apps answer with their defaults until one is."
		}
		if len(apps) > 0 {
			state += " Ask it:"
		}
		fmt.Fprintf(out, "\n%s\n\n", state)
		names := slices.Sorted(maps.Keys(apps))
		for _, name := range names[:min(len(names), appsShown)] {
			fmt.Fprintf(out, "  %s\n\n", curl(scheme+v.addr, apps[name]))
		}
		if more := len(names) - appsShown; more > 0 {
			fmt.Fprintf(out, "  … and %d more apps\n\n", more)
		}
		fmt.Fprintf(out, "Gateway      %s%s\n", scheme, v.addr)
		if l.grpc != nil {
			fmt.Fprintf(out, "gRPC         %s\n", l.grpc.Addr())
		}
		fmt.Fprintf(out, "Web UI       %[1]s%[2]s/ui/\nMetrics      %[1]s%[3]s/metrics\nContainers' output is in %[4]s\nStop with Ctrl-C.\n",
			scheme, l.web.Addr(), l.ops.Addr(), v.fleet.logs())
		return nil
	}
}

// awaitModels says which models start for the first time, until none does or ctx ends. It returns which of the linked
// ones have no ready replica then.
func (v *view) awaitModels(ctx context.Context, out io.Writer) (list []missing, linked int) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for said := ""; ; {
		list, linked = v.missing()
		waiting := strings.Join(startingOf(list), ", ")
		if waiting == "" {
			return list, linked
		}
		if waiting != said {
			fmt.Fprintf(out, "starting %s …\n", waiting)
			said = waiting
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return list, linked
		}
	}
}

// appsShown is how many apps the greeting says how to ask.
const appsShown = 20

// curl is a line for a shell that asks the app at a gateway.
func curl(gateway string, a *serving.App) string {
	example := a.Example
	if example == "" && a.InputType == serving.Tensors {
		var inputs []string
		for _, t := range a.Signature.InputTensors() {
			inputs = append(inputs, fmt.Sprintf("%q: …", t.Name))
		}
		example = "{" + strings.Join(inputs, ", ") + "}"
	}
	if example == "" {
		example = map[serving.InputType]string{
			serving.Bytes: `"aGVsbG8="`, serving.Ints: "[1, 2, 3]", serving.Floats: "[0.1, 0.2]", serving.Doubles: "[0.1, 0.2]", serving.Strings: `"hello"`,
			serving.Chat: `{"messages": [{"role": "user", "content": "Hello"}]}`,
		}[a.InputType]
	}
	body := strings.ReplaceAll(`{"input": `+example+`}`, "'", `'\''`)
	return fmt.Sprintf("curl -s %s/%s/predict -d '%s'", gateway, a.Name, body)
}
