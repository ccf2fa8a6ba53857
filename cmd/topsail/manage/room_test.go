package manage

import (
	"errors"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/internal/check"
)

func TestJudgeRoom(t *testing.T) {
	for name, test := range map[string]struct {
		bytes int64
		full  error
		want  check.State
	}{
		"empty":       {0, nil, check.OK},
		"room":        {90, nil, check.OK},
		"little room": {91, nil, check.Warn},
		"none":        {100, nil, check.Failed},
		"refused one": {50, errors.New("no room for 60 bytes"), check.Failed},
	} {
		f := judgeRoom(test.bytes, 100, 1, test.full)
		if f.State != test.want || (f.Next == "") != (f.State == check.OK) || test.full != nil && !strings.Contains(f.Detail, "60 bytes") {
			t.Errorf("%s: got %+v", name, f)
		}
	}
}
