package records

import "fmt"

// Defaults is what becomes of answers that are the default output.
type Defaults uint8

const (
	DefaultsResult     Defaults = iota // a result that says so
	DefaultsDeadLetter                 // a dead letter
	DefaultsDrop                       // nothing
)

var defaultsNames = [...]string{"result", "dead_letter", "drop"}

func (d Defaults) String() string {
	if int(d) < len(defaultsNames) {
		return defaultsNames[d]
	}
	return fmt.Sprintf("Defaults(%d)", uint8(d))
}

// MarshalText and UnmarshalText let Defaults stand in JSON and TOML by name.
func (d Defaults) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

func (d *Defaults) UnmarshalText(b []byte) error {
	for i, name := range defaultsNames {
		if string(b) == name {
			*d = Defaults(i)
			return nil
		}
	}
	return fmt.Errorf("%q is unknown: use result, dead_letter or drop", b)
}
