package catalog

import (
	"fmt"
	"log/slog"

	"github.com/topsail-serving/topsail/serving"
)

// Report says in sentences what a Merge did, in the order of doing it.
type Report []Note

// Note is one sentence of a Report. Its level is info, or warn where something
// that was there before has given way to the file.
type Note struct {
	Level slog.Level
	Text  string
}

func (r *Report) info(format string, args ...any) {
	*r = append(*r, Note{slog.LevelInfo, fmt.Sprintf(format, args...)})
}

func (r *Report) warn(format string, args ...any) {
	*r = append(*r, Note{slog.LevelWarn, fmt.Sprintf(format, args...)})
}

// came says how an object came that no file of a start brought.
func came(origin serving.Origin) string {
	if origin == serving.FromApply {
		return "applied as a file"
	}
	return "made through the API"
}

// took says that the file has put an object. was is the origin of the one that
// it replaces, "" where there is none; same: the two have one definition; changed
// is the level at which to say that an object of the file has changed.
func (r *Report) took(object string, was serving.Origin, same bool, changed slog.Level) {
	switch {
	case was == "":
		r.info("%s is new in the file", object)
	case same:
		r.info("%s, %s, is the file's from now on", object, came(was))
	case was != serving.FromFile:
		r.warn("%s: the definition in the file replaces the one %s", object, came(was))
	default:
		*r = append(*r, Note{changed, object + " is now as the file defines it"})
	}
}
