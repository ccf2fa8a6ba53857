package admin

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/topsail-serving/topsail/cmd/topsail/admin/screen"
	"github.com/topsail-serving/topsail/internal/apiclient"
	"github.com/topsail-serving/topsail/web/api"
)

func keyCommand() *cobra.Command {
	list := verb(&cobra.Command{Use: "list", Short: "List the keys", Args: cobra.NoArgs}, listKeys)
	revoke := verb(deletes(takes("revoke KEY", "Revoke a key, by its id or name", keyNames)), revokeKey)
	return noun(&cobra.Command{Use: "key", Short: "Keys: access for people and programs"}, list, createKey(), revoke)
}

func listKeys(k *call) error {
	keys, raw, err := items[api.Key](k, 0, nil, "keys")
	if err != nil {
		return err
	}
	t := screen.NewTable("KEY", "NAME", "ROLE", "APPS", "PRIORITY", "LIMIT", "CREATED", "EXPIRES")
	for _, one := range keys {
		t.Row(one.ID, one.Name, string(one.Role), appsOf(one), strconv.Itoa(one.Priority), limit(one.Limit), screen.Ago(k.now, one.Created), screen.Ago(k.now, one.Expires))
	}
	return k.showList(raw, t, "there are no keys: create one with `topsail key create NAME --role viewer`")
}

func appsOf(key api.Key) string {
	if len(key.Apps) == 0 {
		return "all"
	}
	return strings.Join(key.Apps, ", ")
}

func createKey() *cobra.Command {
	c := changes(&cobra.Command{
		Use:     "create NAME",
		Short:   "Create a key; its secret is shown once",
		Args:    cobra.ExactArgs(1),
		Example: "  topsail key create shop --role query --app wine --limit 100 --secret-file shop.key",
	})
	f := c.Flags()
	f.String("role", "", "query, viewer, operator, deployer or admin")
	f.StringSlice("app", nil, "for this app only; may be repeated")
	f.Duration("expires", 0, "how long it is valid, such as 720h; 0 is forever")
	f.Float64("limit", 0, "queries a second at each gateway; 0 is any")
	f.Int("priority", 0, "the highest that its queries can have, from 0, the highest, to 3")
	f.Int("burst", 0, "with --limit: queries at once; 0 is a second's worth")
	f.String("secret-file", "", "write the secret to this new file instead of the terminal")
	return verb(c, func(k *call) error {
		body, err := k.newKey()
		if err != nil {
			return err
		}
		return k.makeKey(body, text(k.cmd, "secret-file"))
	})
}

// newKey is what flags say of a key, and nothing else.
func (k *call) newKey() (map[string]any, error) {
	body := map[string]any{"name": k.args[0], "role": text(k.cmd, "role")}
	if body["role"] == "" {
		return nil, misused("name the role of the key: --role query, viewer, operator, deployer or admin")
	}
	if apps, _ := k.cmd.Flags().GetStringSlice("app"); len(apps) > 0 {
		body["apps"] = apps
	}
	holds, _ := k.cmd.Flags().GetDuration("expires")
	if holds < 0 {
		return nil, misused("--expires must be a time above 0, such as 720h")
	}
	if holds > 0 {
		body["expires"] = k.now.Add(holds).UTC()
	}
	if priority, _ := k.cmd.Flags().GetInt("priority"); priority != 0 {
		body["priority"] = priority
	}
	limit, err := k.limit()
	if limit != nil {
		body["limit"] = limit
	}
	return body, err
}

// makeKey makes the file first: a secret that cannot be kept is lost.
func (k *call) makeKey(body map[string]any, path string) error {
	r := apiclient.Request{Method: "POST", Path: []string{"keys"}, Body: body}
	if k.dryRun() {
		_, err := k.preview(r, true)
		return err
	}
	to := k.Out
	if path != "" {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return fmt.Errorf("a file for the secret: %w", err)
		}
		defer f.Close()
		to = f
	}
	var made api.KeyWithSecret
	raw, err := k.Do(k.ctx, &made, r)
	if err != nil {
		if path != "" {
			err = errors.Join(err, os.Remove(path))
		}
		return err
	}
	if k.format == "json" && path == "" {
		return k.json(raw)
	}
	if _, err := io.WriteString(to, made.Secret+"\n"); err != nil {
		return fmt.Errorf("key %s was created, but its secret could not be written (%w): revoke it and create another", made.ID, err)
	}
	fmt.Fprintf(k.Err, "key %s of %s is created; its secret cannot be shown again\n", screen.Clean(made.ID), screen.Clean(made.Name))
	return nil
}

func revokeKey(k *call) error {
	keys, _, err := items[api.Key](k, 0, nil, "keys")
	if err != nil {
		return err
	}
	var found []api.Key
	for _, one := range keys {
		if one.ID == k.args[0] {
			found = []api.Key{one}
			break
		}
		if one.Name == k.args[0] {
			found = append(found, one)
		}
	}
	switch len(found) {
	case 0:
		return &apiclient.Problem{Status: 404, Detail: fmt.Sprintf("key %q does not exist: see `topsail key list`", k.args[0])}
	case 1:
		return k.remove(deletion("keys", found[0].ID), "Revoke key %s of %s?", "key %s of %s is revoked", found[0].ID, found[0].Name)
	}
	return fmt.Errorf("%d keys are named %q: give the id of one, from `topsail key list`", len(found), k.args[0])
}
