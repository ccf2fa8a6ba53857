package admin

import (
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/topsail-serving/topsail/cmd/topsail/admin/screen"
	"github.com/topsail-serving/topsail/internal/apiclient"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/api"
)

func modelCommand() *cobra.Command {
	list := verb(&cobra.Command{Use: "list", Short: "List the models", Args: cobra.NoArgs}, listModels)
	get := verb(takes("get MODEL", "Show a model", modelNames), func(k *call) error {
		return read(k, modelTable, nil, "models", k.args[0])
	})
	remove := verb(deletes(takes("delete MODEL", "Delete a model that no app links, with all its versions", modelNames)), func(k *call) error {
		return k.remove(deletion("models", k.args[0]), "Delete model %s with all its versions?", "model %s is deleted", k.args[0])
	})
	current := verb(replacesContract(changes(&cobra.Command{
		Use: "current MODEL VERSION", Short: "Make a version the current one",
		Args: cobra.RangeArgs(1, 2), ValidArgsFunction: complete(modelNames, versionsOf),
	})), func(k *call) error {
		id, err := oneVersion(k.args)
		if err != nil {
			return err
		}
		r := k.contract(put(map[string]string{"version": id.Version}, "models", id.Model, "current"))
		return k.change(r, "%v is current; it gets queries as soon as one of its replicas is ready", id)
	})
	history := verb(takes("history MODEL", "Show which versions came, went and became current, newest first", modelNames), modelHistory)
	history.Flags().IntP("lines", "n", 20, "how many; 0 is all")
	return noun(&cobra.Command{Use: "model", Short: "Models: what apps call"}, list, get, history, remove, current)
}

func listModels(k *call) error {
	models, raw, err := items[api.Model](k, 0, nil, "models")
	if err != nil {
		return err
	}
	t := screen.NewTable("MODEL", "CURRENT", "SERVING", "PREVIOUS", "INPUT", "VERSIONS", "APPS")
	for _, m := range models {
		t.Row(m.Name, m.Current, m.Serving, m.Previous, inputType(m.InputType), strings.Join(m.Versions, ", "), strings.Join(m.Apps, ", "))
	}
	return k.showList(raw, t, "there are no models yet: deploy one with `topsail deploy NAME --bundle PATH`")
}

// inputType is empty for one that is not known.
func inputType(t serving.InputType) string {
	if t == 0 {
		return ""
	}
	return t.String()
}

func modelTable(m api.Model) *screen.Table {
	t := screen.NewTable()
	t.Row("name", m.Name)
	t.Row("current", m.Current)
	t.Row("serving", m.Serving)
	t.Row("previous", m.Previous)
	t.Row("input type", inputType(m.InputType))
	t.Row("versions", strings.Join(m.Versions, ", "))
	t.Row("apps", strings.Join(m.Apps, ", "))
	return t
}

func modelHistory(k *call) error {
	most, err := k.cmd.Flags().GetInt("lines")
	if err != nil || most < 0 {
		return misused("--lines must be 0 or more")
	}
	changes, raw, err := items[api.ModelChange](k, most, nil, "models", k.args[0], "history")
	if err != nil {
		return err
	}
	t := screen.NewTable("WHEN", "VERSION", "WHAT", "BEFORE", "WHO", "FROM", "CLIENT")
	for _, c := range changes {
		t.Row(screen.Ago(k.now, c.At), c.Version, strings.ReplaceAll(c.Action, "_", " "), c.Before, c.Who, c.From, screen.Short(c.Client, 40))
	}
	return k.showList(raw, t, "the audit log has nothing of it any more")
}

func rollbackCommand() *cobra.Command {
	c := deletes(&cobra.Command{
		Use:               "rollback MODEL [VERSION]",
		Short:             "Return to the previous version, or to another one",
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: complete(modelNames, versionsOf),
	})
	return single(c, rollBack)
}

// rollBack shows the effect on the model as it is, and changes it only as long as it is so.
func rollBack(k *call) error {
	model := k.args[0]
	tag, err := k.tag("models", model)
	if err != nil {
		return err
	}
	body := map[string]string{}
	if len(k.args) == 2 {
		body["version"] = k.args[1]
	}
	r := apiclient.Request{Method: http.MethodPost, Path: []string{"models", model, "rollback"}, Body: body, IfMatch: tag}
	if k.dryRun() {
		_, err := k.preview(r, true)
		return err
	}
	if !k.flag("yes") {
		if _, err := k.preview(r, false); err != nil {
			return err
		}
		if sure, err := k.Ask(k.ctx, "Roll back "+screen.Clean(model)+"?"); err != nil || !sure {
			return err
		}
	}
	return k.change(r, "model %s is rolled back; `topsail model get %[1]s` shows where its queries go", model)
}
