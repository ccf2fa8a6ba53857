package manage

import (
	"errors"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/cmd/topsail/doctor"
)

func TestJudgeRoom(t *testing.T) {
	for name, test := range map[string]struct {
		bytes int64
		full  error
		want  doctor.State
	}{
		"empty":       {0, nil, doctor.OK},
		"room":        {90, nil, doctor.OK},
		"little room": {91, nil, doctor.Warn},
		"none":        {100, nil, doctor.Fail},
		"refused one": {50, errors.New("no room for 60 bytes"), doctor.Fail},
	} {
		f := judgeRoom(test.bytes, 100, 1, test.full)
		if f.State != test.want || (f.Next == "") != (f.State == doctor.OK) || test.full != nil && !strings.Contains(f.Detail, "60 bytes") {
			t.Errorf("%s: got %+v", name, f)
		}
	}
}
