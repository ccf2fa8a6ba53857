package local

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"topsail/serving"
)

// greet says what is being waited for, and when everything is ready how to ask.
func greet(ctx context.Context, out io.Writer, v *view, l *listeners) {
	start, said := time.Now(), ""
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		waiting := strings.Join(v.waiting(), ", ")
		if waiting == "" {
			break
		}
		if waiting != said {
			fmt.Fprintf(out, "starting %s …\n", waiting)
			said = waiting
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
	fmt.Fprintf(out, "\nTopsail is ready after %.1f s. Ask it:\n\n", time.Since(start).Seconds())
	apps := v.store.Catalog().Apps
	for _, name := range slices.Sorted(maps.Keys(apps)) {
		fmt.Fprintf(out, "  %s\n\n", curl(v.addr, apps[name]))
	}
	fmt.Fprintf(out, "Status page  http://%s/\nMetrics      http://%s/metrics\nContainers' output is in %s\nStop with Ctrl-C.\n", l.web.Addr(), l.ops.Addr(), v.fleet.logs())
}

// curl is a line for a shell that asks the app.
func curl(addr string, a *serving.App) string {
	example := a.Example
	if example == "" {
		example = map[serving.InputType]string{
			serving.Bytes: `"aGVsbG8="`, serving.Ints: "[1, 2, 3]", serving.Floats: "[0.1, 0.2]", serving.Doubles: "[0.1, 0.2]", serving.Strings: `"hello"`,
		}[a.InputType]
	}
	body := strings.ReplaceAll(`{"input": `+example+`}`, "'", `'\''`)
	return fmt.Sprintf("curl -s http://%s/%s/predict -d '%s'", addr, a.Name, body)
}
