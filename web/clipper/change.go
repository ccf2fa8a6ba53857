package clipper

import (
	"context"
	"fmt"

	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/web/auth"
	"github.com/topsail-serving/topsail/web/change"
)

// refusal is a sentence that says why a request is refused.
type refusal string

func (r refusal) Error() string { return string(r) }

func refused(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }

// change makes the changes that plan wants, in the name of the caller.
func (a *admin) change(ctx context.Context, plan change.Plan) error {
	_, _, err := a.writer.Make(ctx, auth.Of(ctx).Author(), plan)
	return err
}

// one is the plan of a single change.
func one(c catalog.Change) []catalog.Change { return []catalog.Change{c} }
