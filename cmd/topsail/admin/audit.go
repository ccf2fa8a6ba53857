package admin

import (
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/topsail-serving/topsail/cmd/topsail/admin/screen"
	"github.com/topsail-serving/topsail/serving"
)

func auditCommand() *cobra.Command {
	list := &cobra.Command{Use: "list", Short: "List changes, newest first", Args: cobra.NoArgs}
	auditFlags(list.Flags())
	c := noun(&cobra.Command{Use: "audit", Short: "The audit log: every change, with who, when, before and after"}, verb(list, listAudit))
	auditFlags(c.Flags())
	return verb(c, listAudit)
}

func auditFlags(f *pflag.FlagSet) {
	f.String("kind", "", "only changes of this kind of object: app, model, version, replica, artifact, key, learned, stream or role")
	f.String("name", "", "of this object")
	f.String("who", "", "by this key")
	f.IntP("lines", "n", 20, "how many; 0 is all")
}

func listAudit(k *call) error {
	most, err := k.cmd.Flags().GetInt("lines")
	if err != nil || most < 0 {
		return misused("--lines must be at least 0")
	}
	entries, raw, err := items[serving.AuditEntry](k, most, k.parameters("kind", "name", "who"), "audit")
	if err != nil {
		return err
	}
	t := screen.NewTable("WHEN", "WHO", "FROM", "ACTION", "OBJECT", "CHANGES")
	for _, e := range entries {
		t.Row(screen.Ago(k.now, e.At), e.Who, e.From, e.Action, e.Kind+" "+e.Name, screen.Short(changed(e), 80))
	}
	return k.showList(raw, t, "nothing has been changed yet")
}

// changed are the members that an entry changed.
func changed(e serving.AuditEntry) string {
	if e.Action != "update" {
		return ""
	}
	var before, after any
	if json.Unmarshal(e.Before, &before) != nil || json.Unmarshal(e.After, &after) != nil {
		return ""
	}
	return strings.Join(memberLines(before, after), "; ")
}
