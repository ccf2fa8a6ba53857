package admin

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/topsail-serving/topsail/cmd/topsail/admin/screen"
	"github.com/topsail-serving/topsail/cmd/topsail/config"
	"github.com/topsail-serving/topsail/internal/apiclient"
	"github.com/topsail-serving/topsail/internal/schema"
	"github.com/topsail-serving/topsail/serving"
)

func policyCommand() *cobra.Command {
	get := verb(takes("get APP", "Show an app's selection policy", appNames), getPolicy)
	set := &cobra.Command{
		Use:   "set APP [OPTION=VALUE…]",
		Short: "Set an app's selection policy, or some options of it",
		Long: "Sets an app's selection policy. With kind=… the given options replace the policy; without it they change\n" +
			"the existing policy, and OPTION= removes an option. Separate the elements of a list with commas, and name the\n" +
			"members of a table or the options of a fallback with a dot: weights.2=0.1. --file takes a whole policy as\n" +
			"TOML or JSON.",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: complete(appNames),
		Example:           "  topsail policy set wine kind=exp3 gamma=0.1\n  topsail policy set wine kind=versions canary=2 share=0.1",
	}
	set.Flags().StringP("file", "f", "", "the policy as TOML or JSON; - is standard input")
	return noun(&cobra.Command{Use: "policy", Short: "Selection policies: which models answer for an app"}, get, verb(changes(set), setPolicy))
}

// appPolicy is policy get and policy set under the noun app.
func appPolicy() *cobra.Command {
	c := &cobra.Command{
		Use:               "policy APP [OPTION=VALUE…]",
		Short:             "Show or set an app's selection policy, as `topsail policy` does",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: complete(appNames),
	}
	c.Flags().StringP("file", "f", "", "the policy as TOML or JSON; - is standard input")
	return verb(changes(c), func(k *call) error {
		if len(k.args) == 1 && text(k.cmd, "file") == "" {
			return getPolicy(k)
		}
		return setPolicy(k)
	})
}

func getPolicy(k *call) error {
	var policy serving.PolicySpec
	raw, err := k.Get(k.ctx, &policy, nil, "apps", k.args[0], "policy")
	if err != nil {
		return err
	}
	t := screen.NewTable()
	policy.Kind = policy.KindName()
	written, err := json.Marshal(policy)
	if err != nil {
		return err
	}
	var whole any
	if err := json.Unmarshal(written, &whole); err != nil {
		return err
	}
	members := map[string]string{}
	flatten("", whole, members)
	for _, name := range sortedKeys(members) {
		text := members[name]
		_ = json.Unmarshal([]byte(text), &text) // a string stands without its quotes, as `policy set` takes it
		t.Row(name, text)
	}
	return k.show(raw, t)
}

func setPolicy(k *call) error {
	path := []string{"apps", k.args[0], "policy"}
	pairs, fragment := k.args[1:], text(k.cmd, "file")
	if (len(pairs) > 0) == (fragment != "") {
		return misused("give either options such as kind=exp3 gamma=0.1, or --file")
	}
	var body json.RawMessage
	tag, err := "", error(nil)
	if fragment != "" {
		body, err = k.policyFile(fragment)
	} else {
		body, tag, err = k.changedPolicy(path, pairs)
	}
	if err != nil {
		return err
	}
	r := put(body, path...)
	r.IfMatch = tag
	return k.change(r, "app %s has a new policy", k.args[0])
}

// changedPolicy is the policy that pairs make, with the ETag of the one that they change.
func (k *call) changedPolicy(path, pairs []string) (json.RawMessage, string, error) {
	options, err := parseOptions(pairs)
	if err != nil {
		return nil, "", usageError{err}
	}
	now, tag := json.RawMessage("{}"), ""
	if options["kind"] == nil {
		answer, err := k.Call(k.ctx, apiclient.Request{Path: path})
		if err != nil {
			return nil, "", err
		}
		now, tag = answer.Body, answer.Header.Get("ETag")
	}
	body, err := changeOptions(now, options)
	if err != nil {
		return nil, "", usageError{err}
	}
	return body, tag, nil
}

func (k *call) policyFile(path string) (json.RawMessage, error) {
	content, err := k.readFile(path, maxFileBytes)
	if err != nil {
		return nil, err
	}
	if text := bytes.TrimSpace(content); len(text) > 0 && text[0] == '{' {
		if _, err := serving.ParsePolicy(text); err != nil {
			return nil, usageError{err}
		}
		return text, nil
	}
	policy, err := config.ParsePolicy(content)
	if err != nil {
		return nil, usageError{err}
	}
	return json.Marshal(policy)
}

// parseOptions reads OPTION=VALUE pairs: values as JSON has them, nil for an option to be
// taken away, and a map for options with members.
func parseOptions(pairs []string) (map[string]any, error) {
	options := map[string]any{}
	for _, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, misused("%q is not an option: write OPTION=VALUE, such as kind=exp3", pair)
		}
		if err := setOption(options, name, value, name); err != nil {
			return nil, err
		}
	}
	return options, nil
}

// setOption puts one value in its place; full is the name as it was written.
func setOption(options map[string]any, name, value, full string) error {
	option, member, nested := strings.Cut(name, ".")
	kind, known := optionType(option)
	if !known {
		return misused("option %q is unknown: use %s", option, strings.Join(optionNames(), ", "))
	}
	isMap, isPolicy := kind.Kind() == reflect.Map, kind.Kind() == reflect.Pointer
	if nested != (isMap || isPolicy) && (nested || value != "") {
		if nested {
			return misused("%s has no members: write %s=VALUE", option, option)
		}
		return misused("%s has members: write %s.NAME=VALUE", option, option)
	}
	if !nested {
		v, err := optionValue(kind, value)
		if err != nil {
			return misused("%s: %w", full, err)
		}
		options[option] = v
		return nil
	}
	members, _ := options[option].(map[string]any)
	if members == nil {
		members = map[string]any{}
		options[option] = members
	}
	if isPolicy {
		return setOption(members, member, value, full)
	}
	v, err := optionValue(kind.Elem(), value)
	if err != nil || member == "" {
		return misused("%s must be a number, such as 0.5, not %q", full, value)
	}
	members[member] = v
	return nil
}

// optionValue is a value as JSON has it; nil for an empty one.
func optionValue(t reflect.Type, text string) (any, error) {
	if text == "" {
		return nil, nil
	}
	switch t.Kind() {
	case reflect.Bool:
		v, err := strconv.ParseBool(text)
		if err != nil {
			return nil, misused("must be true or false, not %q", text)
		}
		return v, nil
	case reflect.Int, reflect.Int64:
		v, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, misused("must be a whole number, not %q", text)
		}
		return v, nil
	case reflect.Float64:
		v, err := strconv.ParseFloat(text, 64)
		if _, written := json.Marshal(v); err != nil || written != nil {
			return nil, misused("must be a number, not %q", text)
		}
		return v, nil
	case reflect.Slice:
		var list []string
		for element := range strings.SplitSeq(text, ",") {
			list = append(list, strings.TrimSpace(element))
		}
		return list, nil
	}
	return text, nil
}

// optionType is the type of an option's value.
func optionType(name string) (reflect.Type, bool) {
	for _, f := range schema.JSON.Fields(reflect.TypeFor[serving.PolicySpec]()) {
		if f.Key == name {
			return f.Type, true
		}
	}
	return nil, false
}

func optionNames() []string {
	return schema.Keys(schema.JSON.Fields(reflect.TypeFor[serving.PolicySpec]()))
}

// changeOptions puts options into a policy, and checks the names and types of all.
func changeOptions(policy json.RawMessage, options map[string]any) (json.RawMessage, error) {
	whole := map[string]any{}
	if err := json.Unmarshal(policy, &whole); err != nil {
		return nil, err
	}
	changeMembers(whole, options)
	body, err := json.Marshal(whole)
	if err != nil {
		return nil, err
	}
	if _, err := serving.ParsePolicy(body); err != nil {
		return nil, err
	}
	return body, nil
}

func changeMembers(whole, changes map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		switch v := changes[name].(type) {
		case nil:
			delete(whole, name)
		case map[string]any:
			members, _ := whole[name].(map[string]any)
			if members == nil {
				members = map[string]any{}
			}
			changeMembers(members, v)
			whole[name] = members
		default:
			whole[name] = v
		}
	}
}
