package obs

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/lmittmann/tint"
	"github.com/mattn/go-isatty"
)

// NewLogger logs to w: level is debug, info, warn or error; format is text, json,
// or auto, which is text on a terminal and JSON elsewhere.
func NewLogger(w io.Writer, level, format string) (*slog.Logger, error) {
	var least slog.Level
	if err := least.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("log level %q is unknown: use debug, info, warn or error", level)
	}
	file, _ := w.(*os.File)
	terminal := file != nil && isatty.IsTerminal(file.Fd())
	if format == "json" || (format == "auto" && !terminal) {
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: least})), nil
	}
	return slog.New(tint.NewTextHandler(w, &tint.Options{Level: least, TimeFormat: time.TimeOnly, NoColor: !terminal})), nil
}
