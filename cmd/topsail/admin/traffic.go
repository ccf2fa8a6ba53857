package admin

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/topsail-serving/topsail/cmd/topsail/admin/screen"
	"github.com/topsail-serving/topsail/web/api"
)

func appTraffic() *cobra.Command {
	c := &cobra.Command{
		Use:               "traffic [APP]",
		Short:             "Show traffic: all apps now, or one app over time",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: complete(appNames),
	}
	c.Flags().Duration("window", 15*time.Minute, "how far back, for one app: 1m to 168h")
	return verb(c, func(k *call) error {
		if len(k.args) == 0 {
			return read(k, nowTable, nil, "traffic")
		}
		window, err := k.cmd.Flags().GetDuration("window")
		if err != nil || window < time.Minute || window > 7*24*time.Hour {
			return misused("--window must be between 1m and 168h")
		}
		query := url.Values{"window": {strconv.Itoa(int(window / time.Second))}}
		return read(k, seriesTable, query, "apps", k.args[0], "traffic")
	})
}

// nowTable has the apps in the order of the server: the worst first.
func nowTable(now api.TrafficNow) *screen.Table {
	t := screen.NewTable("APP", "SLO", "RATE", "WITHIN SLO", "DEFAULTS", "P50", "P95", "P99", "CACHE", "CAUSES")
	for _, a := range now.Apps {
		t.Row(a.App, screen.Micros(a.SLO), screen.Number(a.Rate)+"/s", share(a.Attainment), share(a.Defaults),
			screen.Micros(a.P50), screen.Micros(a.P95), screen.Micros(a.P99), screen.Share(a.CacheHits), causes(a.Causes))
	}
	return t
}

// queried is how many apps clients asked in the last minute, and how often.
func queried(now api.TrafficNow) string {
	apps, rate := 0, 0.0
	for _, a := range now.Apps {
		if a.Rate > 0 {
			apps++
		}
		rate += a.Rate
	}
	if apps == 1 {
		return "queries to 1 app, " + screen.Number(rate) + "/s"
	}
	return "queries to " + strconv.Itoa(apps) + " apps, " + screen.Number(rate) + "/s"
}

// share is empty where there was no answer.
func share(of *float64) string {
	if of == nil {
		return ""
	}
	return screen.Share(*of)
}

func causes(all map[string]float64) string {
	var parts []string
	for _, cause := range slices.Sorted(maps.Keys(all)) {
		if all[cause] > 0 {
			parts = append(parts, cause+" "+screen.Number(all[cause])+"/s")
		}
	}
	return strings.Join(parts, ", ")
}

const seriesRows = 20

// seriesTable shows at most seriesRows moments, the newest last.
func seriesTable(s api.AppSeries) *screen.Table {
	t := screen.NewTable("TIME", "RATE", "WITHIN SLO", "P50", "P95", "P99", "CACHE")
	step := max(1, len(s.Times)/seriesRows)
	for i := (len(s.Times) - 1) % step; i < len(s.Times); i += step {
		t.Row(time.Unix(s.Times[i], 0).Format(time.TimeOnly), at(s.Rate, i, screen.Number), at(s.Attainment, i, screen.Share),
			at(s.P50, i, micros), at(s.P95, i, micros), at(s.P99, i, micros), at(s.CacheHits, i, screen.Share))
	}
	return t
}

// at is a point of a series; empty where it is unknown.
func at(series []*float64, i int, show func(float64) string) string {
	if i >= len(series) || series[i] == nil {
		return ""
	}
	return show(*series[i])
}

func micros(x float64) string { return screen.Micros(int64(x)) }
