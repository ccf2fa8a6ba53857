package admin

import (
	"net/http"

	"github.com/spf13/cobra"

	"github.com/topsail-serving/topsail/cmd/topsail/admin/screen"
	"github.com/topsail-serving/topsail/internal/apiclient"
)

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
