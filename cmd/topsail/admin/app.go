package admin

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/topsail-serving/topsail/cmd/topsail/admin/screen"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/api"
)

func appCommand() *cobra.Command {
	list := verb(&cobra.Command{Use: "list", Short: "List the apps", Args: cobra.NoArgs}, listApps)
	get := verb(takes("get APP", "Show an app", appNames), getApp)
	remove := verb(deletes(takes("delete APP", "Delete an app", appNames)), func(k *call) error {
		return k.remove(deletion("apps", k.args[0]), "Delete app %s?", "app %s is deleted", k.args[0])
	})
	link := verb(replacesContract(changes(takes("link APP MODEL", "Link a model to an app", appNames, modelNames))), func(k *call) error {
		return k.change(k.contract(put(nil, "apps", k.args[0], "links", k.args[1])), "app %s is linked to model %s", k.args[0], k.args[1])
	})
	unlink := verb(changes(takes("unlink APP MODEL", "Unlink a model from an app", appNames, modelNames)), func(k *call) error {
		return k.change(deletion("apps", k.args[0], "links", k.args[1]), "app %s is no longer linked to model %s", k.args[0], k.args[1])
	})
	return noun(&cobra.Command{Use: "app", Short: "Apps: what clients query"},
		list, get, createApp(), setApp(), remove, link, unlink, appPolicy(), insightCommand(), forgetCommand(), appTraffic())
}

// getApp shows, beside what is registered, what a person should look at.
func getApp(k *call) error {
	var a serving.App
	raw, err := k.Get(k.ctx, &a, nil, "apps", k.args[0])
	if err != nil {
		return err
	}
	t := appTable(a)
	var cluster api.Cluster
	if k.format != "json" {
		if _, err := k.Get(k.ctx, &cluster, nil, "cluster"); err != nil {
			t.Row("attention", "unknown: "+err.Error())
		}
	}
	for _, alarm := range cluster.Alarms {
		if alarm.Kind == "app" && alarm.Name == a.Name {
			t.Row("attention", alarm.Detail)
		}
	}
	return k.show(raw, t)
}

func listApps(k *call) error {
	apps, raw, err := items[serving.App](k, 0, nil, "apps")
	if err != nil {
		return err
	}
	columns := []string{"APP", "INPUT", "SLO", "MODELS", "POLICY", "DEFAULT"}
	if k.wide() {
		columns = append(columns, "OUTPUT", "WEIGHT", "PRIORITY", "LIMIT", "KEY", "ORIGIN")
	}
	t := screen.NewTable(columns...)
	for _, a := range apps {
		row := []string{
			a.Name, a.InputType.String(), screen.Micros(a.SLO.Std().Microseconds()), strings.Join(a.Models, ", "),
			a.Policy.KindName(), screen.Short(a.DefaultOutput, 30),
		}
		if k.wide() {
			row = append(row, string(a.OutputType), weight(a.Weight), strconv.Itoa(a.Priority), limit(a.Limit), keyNeeded(a.RequireKey), string(a.Origin))
		}
		t.Row(row...)
	}
	return k.showList(raw, t, "there are no apps yet: create one with `topsail app create NAME --input-type doubles`")
}

func appTable(a serving.App) *screen.Table {
	t := screen.NewTable()
	t.Row("name", a.Name)
	t.Row("description", a.Description)
	t.Row("input type", a.InputType.String())
	t.Row("latency objective", screen.Micros(a.SLO.Std().Microseconds()))
	t.Row("default output", a.DefaultOutput)
	t.Row("models", strings.Join(a.Models, ", "))
	t.Row("policy", a.Policy.String())
	t.Row("output type", string(a.OutputType))
	t.Row("weight", weight(a.Weight))
	t.Row("priority", priority(a))
	t.Row("cold start", screen.Micros(a.ColdStart.Std().Microseconds()))
	t.Row("cache", cacheText(a.Cache))
	t.Row("limit", limit(a.Limit))
	t.Row("labels", strings.Join(a.Labels, ", "))
	t.Row("key", keyNeeded(a.RequireKey))
	t.Row("example", a.Example)
	t.Row("origin", string(a.Origin))
	return t
}

func priority(a serving.App) string {
	text := strconv.Itoa(a.Priority)
	if a.MinShare > 0 {
		text += fmt.Sprintf(", and at least %s of the capacity", share(&a.MinShare))
	}
	return text
}

func weight(w float64) string {
	if w == 0 {
		w = 1
	}
	return screen.Number(w)
}

func limit(l *serving.Limit) string {
	switch {
	case l == nil:
		return ""
	case l.Burst == 0:
		return screen.Number(l.PerSecond) + "/s"
	}
	return fmt.Sprintf("%s/s, %d at once", screen.Number(l.PerSecond), l.Burst)
}

func keyNeeded(needed bool) string {
	if needed {
		return "needed"
	}
	return ""
}

func cacheText(c serving.CacheSpec) string {
	if c.Off {
		return "off"
	}
	text := "on"
	if c.Round > 0 {
		text += ", numbers rounded to " + screen.Number(c.Round)
	}
	if c.TTL > 0 {
		text += ", for " + screen.Micros(c.TTL.Std().Microseconds())
	}
	return text
}

func createApp() *cobra.Command {
	c := changes(&cobra.Command{
		Use:     "create APP",
		Short:   "Create an app",
		Args:    cobra.ExactArgs(1),
		Example: "  topsail app create wine --input-type doubles --default -1 --slo 50ms --model wine-forest",
	})
	fieldFlags(c, reflect.TypeFor[serving.App](), true)
	return verb(c, func(k *call) error {
		body, err := k.appMembers()
		if err != nil {
			return err
		}
		body["name"] = k.args[0]
		maps.DeleteFunc(body, func(_ string, v any) bool { return v == nil })
		if body["input_type"] == nil {
			return misused("name the input type of the app: --input-type doubles, floats, ints, strings or bytes")
		}
		if body["latency_slo_micros"] == nil {
			body["latency_slo_micros"] = defaultSLO.Microseconds()
		}
		return k.change(create(body, "apps"), "app %s is created: query it with `topsail predict %[1]s INPUT`", k.args[0])
	})
}

func setApp() *cobra.Command {
	c := changes(&cobra.Command{
		Use:               "set APP",
		Short:             "Change an app's settings",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete(appNames),
		Example:           "  topsail app set wine --slo 20ms --limit 500",
	})
	fieldFlags(c, reflect.TypeFor[serving.App](), false) // what is not given stays as it is
	replacesContract(c)
	return verb(c, func(k *call) error {
		body, err := k.appMembers()
		if err != nil {
			return err
		}
		if len(body) == 0 {
			return misused("name the settings to change, such as --slo 20ms")
		}
		return k.change(k.contract(patch(body, "apps", k.args[0])), "app %s is changed", k.args[0])
	})
}

const defaultSLO = 100 * time.Millisecond

// appMembers are the members of an app that flags give, and no others. No limit takes away the
// one that there is.
func (k *call) appMembers() (map[string]any, error) {
	body, err := k.members(reflect.TypeFor[serving.App]())
	if limit, given := body["limit"].(map[string]any); given {
		switch {
		case limit["per_second"] == nil || limit["per_second"] == 0.0 && limit["burst"] != nil:
			return nil, misused("--burst goes with --limit")
		case limit["per_second"] == 0.0:
			body["limit"] = nil
		}
	}
	return body, err
}

// limit is what --limit and --burst say: nil for no limit, which a merge patch takes
// for taking it away.
func (k *call) limit() (*serving.Limit, error) {
	perSecond, _ := k.cmd.Flags().GetFloat64("limit")
	burst, _ := k.cmd.Flags().GetInt("burst")
	if perSecond == 0 {
		if burst != 0 {
			return nil, misused("--burst goes with --limit")
		}
		return nil, nil
	}
	return &serving.Limit{PerSecond: perSecond, Burst: burst}, nil
}

func insightCommand() *cobra.Command {
	c := takes("insight APP", "Show how an app does, its models, and what its policy has learned", appNames)
	userFlags(c)
	return verb(c, func(k *call) error {
		return read(k, func(in api.Insight) *screen.Table { return insightTable(in, k.now) }, k.parameters("uid", "context"), "apps", k.args[0], "insight")
	})
}

func forgetCommand() *cobra.Command {
	c := takes("forget APP", "Reset what an app's policy has learned", appNames)
	userFlags(c)
	return verb(confirms(c), func(k *call) error {
		if sure, err := k.sure("Reset what the policy of app %s has learned?", k.args[0]); err != nil || !sure {
			return err
		}
		r := deletion("apps", k.args[0], "learned")
		r.Query = k.parameters("uid", "context")
		return k.change(r, "the policy of app %s is reset; its previous state is kept for a day", k.args[0])
	})
}

func userFlags(c *cobra.Command) {
	c.Flags().String("uid", "", "of this user; without it the app's own state")
	c.Flags().String("context", "", "in this context")
}

func insightTable(in api.Insight, now time.Time) *screen.Table {
	t := screen.NewTable("MODEL", "CHOSEN", "ANSWERED", "LATENCY", "REPLICAS", "FAILED", "SHARE", "WORTH", "JUDGED", "LOSS")
	for _, m := range in.Models {
		row := []string{m.Model + ":" + m.Version, shareOf(m.Chosen), shareOf(m.Answered), "", ready(m.Replicas), "", "", "", "", ""}
		if m.Latency > 0 {
			row[3] = screen.Micros(m.Latency)
		}
		if m.Usage != nil {
			row[5] = screen.Number(float64(m.Usage.Failed))
		}
		if l := m.Learned; l != nil {
			row[6], row[7], row[8], row[9] = screen.Share(l.Share), screen.Number(l.Worth), screen.Number(l.Judged), screen.Number(l.Loss)
		}
		t.Row(row...)
	}
	if l := in.Learned; l != nil {
		t.Row("all", "", "", "", "", "", "", "", screen.Number(l.Steps), screen.Number(l.Loss))
		if l.Note != "" {
			t.Row(l.Note)
		}
	}
	for _, d := range in.Decisions[:min(3, len(in.Decisions))] {
		t.Row(fmt.Sprintf("%s: %v from %d to %d, %s", screen.Ago(now, d.At), d.ModelID, d.From, d.To, d.Reason))
	}
	return t
}

// shareOf is a share that may not be known.
func shareOf(x *float64) string {
	if x == nil {
		return ""
	}
	return screen.Share(*x)
}

// ready says how many of the replicas are.
func ready(states map[string]int) string {
	all := 0
	for _, n := range states {
		all += n
	}
	return fmt.Sprintf("%d of %d", states["ready"], all)
}

// merge is the JSON of a document with members on top of it.
func merge(document json.RawMessage, members map[string]any) (json.RawMessage, error) {
	whole := map[string]any{}
	if len(document) > 0 {
		if err := json.Unmarshal(document, &whole); err != nil {
			return nil, misused("the file must hold one JSON object: %w", err)
		}
	}
	maps.Copy(whole, members)
	return json.Marshal(whole)
}
