package admin

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// tellsCommit gives a command the flag that says what commit versions are made of.
func tellsCommit(c *cobra.Command) {
	c.Flags().String("commit", "", "commit of the source, which the version shows (default: what git has checked out here; \"\" for none)")
}

// commit is the one that --commit says, or else the one that is checked out here.
func (k *call) commit() string {
	if k.cmd.Flags().Changed("commit") {
		return text(k.cmd, "commit")
	}
	return checkedOut(k.ctx, "")
}

// gitWithin is how long git may take, which looks at every file for changes.
const gitWithin = 2 * time.Second

// checkedOut is the commit that git has checked out in a folder, with -dirty where files
// differ from it. It is empty where there is none, or no git.
func checkedOut(ctx context.Context, folder string) string {
	ctx, cancel := context.WithTimeout(ctx, gitWithin)
	defer cancel()
	git := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
	git.Dir, git.Env, git.WaitDelay = folder, append(os.Environ(), "GIT_OPTIONAL_LOCKS=0"), time.Second
	out, err := git.Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
