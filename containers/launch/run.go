//go:build unix

package launch

import (
	"context"
	"errors"
	"fmt"

	"github.com/topsail-serving/topsail/serving/bundle"
)

// Run makes everything ready and replaces the process by the model's. It returns only
// when something is wrong, and says what to do, or when ctx ends.
func Run(ctx context.Context, o Options) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	var held locks
	image, err := o.prepare(ctx, &held)
	if err == nil {
		err = o.become(image, &held)
	}
	return errors.Join(err, held.close())
}

// prepare makes ready what the bundle needs, and keeps it from being swept.
func (o *Options) prepare(ctx context.Context, held *locks) (Image, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.Timeout, fmt.Errorf("it was not ready after %v", o.Timeout))
	defer cancel()
	manifest, dir, failed, err := o.unpacked(ctx, held)
	if err != nil {
		return Image{}, err
	}
	switch manifest.Runtime {
	case bundle.CommandRuntime:
		return o.commandImage(manifest.Command, dir)
	case bundle.PMMLRuntime:
		return o.pmmlImage(manifest, dir)
	}
	python, err := o.findPython(manifest)
	if err != nil {
		return Image{}, err
	}
	env, err := o.environment(ctx, held, manifest, python, failed)
	if err != nil {
		return Image{}, err
	}
	sdk, err := o.sdk(ctx, held)
	if err != nil {
		return Image{}, err
	}
	if manifest.Runtime == bundle.HostRuntime {
		return o.pythonImage(env, sdk, dir, "topsail", "host"), nil
	}
	return o.pythonImage(env, sdk, dir, "topsail.runtime", dir), nil
}

// become hands the locks on to the model's process, which keeps them as long as it lives.
func (o *Options) become(image Image, held *locks) error {
	if o.Exec != nil {
		return o.Exec(image)
	}
	if err := held.inherit(); err != nil {
		return err
	}
	return image.Exec()
}

// say writes a line for people.
func (o *Options) say(format string, args ...any) { fmt.Fprintf(o.Log, format+"\n", args...) }
