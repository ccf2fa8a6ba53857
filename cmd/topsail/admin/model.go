package admin

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/topsail-serving/topsail/cmd/topsail/admin/screen"
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
	return noun(&cobra.Command{Use: "model", Short: "Models: what apps call"}, list, get, remove, current)
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
