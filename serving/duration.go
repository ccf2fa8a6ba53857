package serving

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Duration is a time that is written as whole microseconds, in JSON and in files.
type Duration time.Duration

// Std is the duration as the standard library has it.
func (d Duration) Std() time.Duration { return time.Duration(d) }

func (d Duration) String() string { return time.Duration(d).String() }

// MarshalJSON writes microseconds.
func (d Duration) MarshalJSON() ([]byte, error) {
	return strconv.AppendInt(nil, d.Std().Microseconds(), 10), nil
}

// UnmarshalJSON reads microseconds.
func (d *Duration) UnmarshalJSON(b []byte) error {
	if bytes.Equal(b, []byte("null")) {
		return nil
	}
	var n int64
	if err := json.Unmarshal(b, &n); err != nil {
		return err
	}
	const most = math.MaxInt64 / int64(time.Microsecond)
	if n > most || n < -most {
		return fmt.Errorf("%d microseconds are out of range", n)
	}
	*d = Duration(n * int64(time.Microsecond))
	return nil
}
