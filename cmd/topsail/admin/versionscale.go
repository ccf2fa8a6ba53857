package admin

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/topsail-serving/topsail/serving"
)

func (k *call) bounds() (*serving.ScaleSpec, error) {
	least, _ := k.cmd.Flags().GetInt("min")
	most, _ := k.cmd.Flags().GetInt("max")
	if most < 1 || least < 0 || least > most {
		return nil, misused("--min and --max: use 0 ≤ min ≤ max and 1 ≤ max")
	}
	return &serving.ScaleSpec{Min: least, Max: most}, nil
}

func scaleVersion() *cobra.Command {
	c := changes(&cobra.Command{
		Use:               "scale MODEL:VERSION [COUNT]",
		Short:             "Set the number of replicas, or bounds within which it follows demand",
		Args:              cobra.RangeArgs(1, 3),
		ValidArgsFunction: complete(versionNames),
		Example:           "  topsail version scale wine-forest:1 3\n  topsail version scale wine-forest:1 --min 1 --max 10",
	})
	c.Flags().Int("min", 0, "with --max: least replicas")
	c.Flags().Int("max", 0, "most replicas; their number follows demand")
	return verb(c, func(k *call) error {
		id, rest, err := versionArg(k.args)
		if err != nil {
			return err
		}
		bounded := k.cmd.Flags().Changed("min") || k.cmd.Flags().Changed("max")
		if bounded == (len(rest) == 1) || len(rest) > 1 {
			return misused("give either a COUNT, or --max with or without --min")
		}
		body, said := map[string]any{}, ""
		if bounded {
			bounds, err := k.bounds()
			if err != nil {
				return err
			}
			body["scale"], said = bounds, fmt.Sprintf("between %d and %d replicas", bounds.Min, bounds.Max)
		} else {
			count, err := replicaCount(rest[0])
			if err != nil {
				return err
			}
			body["replicas"], said = count, fmt.Sprintf("%d replicas", count)
		}
		return k.change(put(body, versionPath(id, "scale")...), "%v will have %s", id, said)
	})
}

func replicaCount(text string) (int, error) {
	count, err := strconv.Atoi(text)
	if err != nil || count < 0 || count > serving.MaxReplicas {
		return 0, misused("%q is not a number of replicas: use 0 to %d", text, serving.MaxReplicas)
	}
	return count, nil
}

func pinVersion() *cobra.Command {
	c := changes(&cobra.Command{
		Use:               "pin MODEL:VERSION [COUNT]",
		Short:             "Set the number of replicas manually, or pause scaling",
		Args:              cobra.RangeArgs(1, 3),
		ValidArgsFunction: complete(versionNames),
		Example:           "  topsail version pin wine-forest:1 4 --for 1h --reason 'load test'\n  topsail version pin wine-forest:1 --pause",
	})
	c.Flags().Bool("pause", false, "keep the current number")
	c.Flags().Duration("for", 0, "how long the pin lasts; 0 is until it is released")
	c.Flags().String("reason", "", "reason, shown to others")
	return verb(c, func(k *call) error {
		id, rest, err := versionArg(k.args)
		if err != nil {
			return err
		}
		if k.flag("pause") == (len(rest) == 1) || len(rest) > 1 {
			return misused("give either a COUNT or --pause")
		}
		pin := serving.Pin{Count: serving.Paused, Reason: text(k.cmd, "reason")}
		if len(rest) == 1 {
			if pin.Count, err = replicaCount(rest[0]); err != nil {
				return err
			}
		}
		hold, _ := k.cmd.Flags().GetDuration("for")
		if hold < 0 {
			return misused("--for must be a time above 0, such as 1h")
		}
		if hold > 0 {
			pin.Until = k.now.Add(hold).UTC().Truncate(time.Second)
		}
		return k.change(put(pin, versionPath(id, "pin")...), "%v is pinned; release it with `topsail version release %[1]v`", id)
	})
}

func releaseVersion() *cobra.Command {
	c := changes(takesVersion("release MODEL:VERSION", "Unpin a version, so that the scheduler decides"))
	return verb(c, func(k *call) error {
		id, err := oneVersion(k.args)
		if err != nil {
			return err
		}
		return k.change(deletion(versionPath(id, "pin")...), "%v is released; the scheduler sets its number of replicas", id)
	})
}
